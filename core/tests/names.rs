//! The names of the fields, which are the same in every language: what apps and files rely on, held against the schema.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use kitport::model::Capability;
use kitport::{KitError, Outcome};
use serde_json::Value;

/// Types and their fields; `?` marks one that may be absent.
const TYPES: &[(&str, &str)] = &[
    ("Chat", "id title created_at updated_at parent_id? model? run_status?"),
    ("ChatPage", "chats next_cursor?"),
    ("ChatSnapshot", "chat seq items runs queue plan approvals question? children usage? settings workspace?"),
    ("Settings", "model? profile?"),
    ("Workspace", "path? name? branch?"),
    ("Message", "id text run? created_at? provisional"),
    ("OtherMessage", "role id text run? created_at? provisional"),
    ("ToolCall", "id name arguments? status result? is_error? run? durable"),
    ("EditItem", "id path state run?"),
    ("Run", "id status model? started_at? finished_at? error? wait?"),
    ("RunWait", "resume_at? reason?"),
    ("QueuedInput", "id kind text created_at?"),
    ("PlanStep", "id? text status"),
    ("Question", "id text suggestions"),
    ("Approval", "id run? call_id? tool? title? arguments? state reason? options? created_at?"),
    ("Child", "id parent_id title state question? result?"),
    ("Usage", "input_tokens output_tokens cached_input_tokens? total_tokens? cost_usd? context?"),
    ("ContextUsage", "used? window?"),
    ("Context", "structure compactions view"),
    ("ContextStructure", "chapters episodes"),
    ("Chapter", "id title? first_seq last_seq message_count episodes"),
    ("Episode", "id title? first_seq last_seq message_count"),
    ("ContextView", "threshold window? response_reserve? items"),
    ("ContextItem", "kind id seq?"),
    ("Compaction", "id kind trigger seq? at? applied tokens_before? tokens_after?"),
    ("ContextSummary", "id kind title? text created_at?"),
    ("HistoryItem", "seq item"),
    ("Providers", "providers main? active_main?"),
    ("Provider", "id kind name? has_key models"),
    ("Model", "id name? context_window?"),
    ("Job", "id title? status"),
    ("Reference", "kind uri name?"),
    ("Rewound", "chat new_chat? in_place"),
    ("Sent", "run_id? input_id? queued"),
    ("Profile", "id name?"),
    ("ChatRenamed", "title"),
    ("ChatArchived", "archived"),
    ("ChatSettings", "model? profile?"),
    ("ChatWorkspace", "path? name? branch?"),
    ("RunStarted", "model? resumed"),
    ("RunWaiting", "resume_at? reason?"),
    ("RunFinished", "status error?"),
    ("MessageUser", "message after_id?"),
    ("MessageSystem", "message after_id?"),
    ("MessageDelta", "message_id offset text"),
    ("MessageAssistant", "message_id text provisional"),
    ("ThinkingDelta", "offset text"),
    ("ToolStarted", "call"),
    ("ToolOutput", "call_id offset text"),
    ("ToolFinished", "call_id result? is_error?"),
    ("EditApplied", "edit"),
    ("EditUndone", "edit_id"),
    ("PlanUpdated", "steps"),
    ("ApprovalRequested", "approval"),
    ("ApprovalResolved", "approval_id state reason?"),
    ("QuestionAsked", "question"),
    ("QuestionResolved", "question_id?"),
    ("QueueUpdated", "inputs"),
    ("ChildSpawned", "child"),
    ("ChildQuestionAsked", "child_id question"),
    ("ChildQuestionResolved", "child_id question_id"),
    ("ChildFinished", "child_id state result?"),
    ("CompactionUpdated", "compaction"),
    ("ContextChanged", "view"),
    ("JobStarted", "job"),
    ("JobOutput", "job_id offset text"),
    ("JobFinished", "job_id status exit_code?"),
    ("UsageUpdated", "usage"),
    ("Gap", "reason lost snapshot_seq?"),
    // What every event has beside its kind and its own fields.
    ("Event", "chat seq durable run? at?"),
    ("CapabilityDetail", "on by why_off?"),
    ("Constraints", "references question_answers follow_up_while_running"),
    ("QuestionAnswers", "several_items several_choices choice_and_text skip"),
    ("ConnectionState", "status reason?"),
    ("ChatApproval", "chat approval"),
];

/// The kinds of items, and the type of each.
const ITEMS: &[(&str, &str)] = &[
    ("user_message", "Message"),
    ("assistant_message", "Message"),
    ("system_message", "Message"),
    ("other_message", "OtherMessage"),
    ("tool_call", "ToolCall"),
    ("edit", "EditItem"),
];

/// The kinds of events, and the type of each.
const EVENTS: &str = "chat.renamed chat.archived chat.settings chat.workspace run.started run.waiting run.finished \
    message.user message.delta message.assistant message.system thinking.delta tool.started tool.output tool.finished \
    edit.applied edit.undone plan.updated approval.requested approval.resolved question.asked question.resolved \
    queue.updated child.spawned child.question_asked child.question_resolved child.finished compaction.updated \
    context.changed job.started job.output job.finished usage.updated gap";

/// What all errors carry, then the kinds with their types, what they are below, and their own fields.
const ERROR_FIELDS: &str = "code message outcome? host_code? host_data?";
const ERRORS: &[(&str, &str, Option<&str>, &str)] = &[
    ("unsupported", "KitUnsupported", None, "capability"),
    ("not_found", "KitNotFound", None, ""),
    ("conflict", "KitConflict", None, ""),
    ("busy", "KitBusy", Some("KitConflict"), ""),
    ("invalid", "KitInvalid", None, ""),
    ("denied", "KitDenied", None, ""),
    ("needs_setup", "KitNeedsSetup", None, ""),
    ("failed", "KitFailed", None, ""),
    ("host_exited", "KitHostExited", None, "exit_code? signal? stderr_tail"),
    ("protocol_mismatch", "KitProtocolMismatch", None, "expected actual"),
    ("timeout", "KitTimeout", None, "method"),
    ("closed", "KitClosed", None, ""),
    ("gateway", "KitGatewayError", None, ""),
];

/// Methods and streams with their parameters, in the order of positional arguments.
const CALLS: &[(&str, &str)] = &[
    ("list_chats", "cursor? query?"),
    ("load_chat", "chat"),
    ("events", "chat after?"),
    ("load_history_range", "chat first last"),
    ("load_context", "chat"),
    ("load_summary", "chat kit_id"),
    ("list_providers", ""),
    ("list_models", "chat?"),
    ("list_profiles", "chat?"),
    ("created_chats", ""),
    ("watch_all", ""),
    ("pending_approvals", ""),
    ("connection", ""),
    ("create_chat", "title?"),
    ("send", "chat text references?"),
    ("run", "chat text"),
    ("steer", "chat text"),
    ("follow_up", "chat text"),
    ("send_queued_now", "chat input"),
    ("edit_queued", "chat input text"),
    ("remove_queued", "chat input"),
    ("cancel", "chat"),
    ("resume", "chat"),
    ("decide_approval", "chat approval decision reason?"),
    ("answer_question", "chat question answer"),
    ("answer_child_question", "chat child question answer"),
    ("rename", "chat title"),
    ("archive", "chat archived"),
    ("fork", "chat message?"),
    ("rewind", "chat message"),
    ("cancel_child", "chat child"),
    ("cancel_job", "chat job"),
    ("undo_edit", "chat edit"),
    ("set_default_model", "model"),
    ("set_model", "chat model"),
    ("set_profile", "chat profile"),
];

/// Capabilities, a boolean each.
const CAPABILITIES: &str = "create_chat send cancel approve steer follow_up questions answer_child_question plan rewind \
    history context summary rename resume usage child_events children queue jobs archive fork edits profiles providers \
    default_model models";

/// Words of enums, where the JSON form has words.
const WORDS: &[(&str, &str)] = &[
    ("PlanStatus", "todo now done"),
    ("ToolStatus", "running done failed"),
    ("EditState", "applied undone"),
    ("Outcome", "unknown not_sent refused"),
    ("ProvidedBy", "host kit"),
    ("RunStatus", "running waiting_for_quota completed failed cancelled interrupted"),
    ("ConnectionStatus", "connected restarting closed"),
    ("ApprovalState", "pending approved approved_for_session denied expired"),
    ("ContextItemKind", "message episode chapter"),
    ("GapReason", "retention ahead oversize epoch mismatch child_rerun live_lost"),
];

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../schema/kitport.schema.json")).unwrap()
}

#[test]
fn every_type_has_its_fields_and_no_other() {
    let schema = schema();
    for (name, fields) in TYPES {
        let def = &schema["$defs"][name];
        let required: Vec<&str> = def["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let got: BTreeMap<String, bool> = def["properties"]
            .as_object()
            .unwrap_or_else(|| panic!("the schema has no {name}"))
            .keys()
            .map(|key| (key.clone(), !required.contains(&key.as_str())))
            .collect();
        let want = fields.split(' ').map(|f| (camel(f.trim_end_matches('?')), f.ends_with('?'))).collect();
        assert_eq!(got, want, "{name}: field, and whether it may be absent");
    }
}

#[test]
fn every_event_kind_has_its_row_here() {
    let schema = schema();
    for event in schema["events"].as_array().unwrap() {
        let name = event["type"].as_str().unwrap();
        assert!(TYPES.iter().any(|(known, _)| *known == name), "{name} has no row");
    }
}

/// The words of an enum, whether it may grow or not.
fn words_of<'a>(schema: &'a Value, name: &str) -> Vec<&'a str> {
    let def = &schema["$defs"][name];
    let open = def["x-open-enum"].as_array().into_iter().flatten();
    let closed = def["oneOf"].as_array().into_iter().flatten().map(|word| &word["const"]);
    open.chain(closed).filter_map(Value::as_str).collect()
}

#[test]
fn the_words_of_enums_are_these() {
    let schema = schema();
    for (name, words) in WORDS {
        assert_eq!(words_of(&schema, name), words.split(' ').collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn items_have_these_kinds() {
    let schema = schema();
    let kinds: Vec<_> = schema["$defs"]["Item"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["properties"]["kind"]["const"].as_str().unwrap(), item["$ref"].as_str().unwrap()))
        .map(|(kind, of)| (kind, of.rsplit('/').next().unwrap()))
        .collect();
    assert_eq!(kinds, ITEMS);
}

#[test]
fn events_have_these_kinds() {
    let schema = schema();
    let kinds: Vec<_> = schema["events"].as_array().unwrap().iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, EVENTS.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn capabilities_have_these_names() {
    let schema = schema();
    let names: Vec<&str> = CAPABILITIES.split_whitespace().collect();
    assert_eq!(words_of(&schema, "Capability"), names);
    let got: BTreeSet<&String> = schema["$defs"]["Capabilities"]["properties"].as_object().unwrap().keys().collect();
    let want: Vec<String> = names.into_iter().map(camel).collect();
    assert_eq!(got, want.iter().collect());
}

/// The schema's tables, and one error of each kind in its JSON form.
#[test]
fn errors_have_these_kinds_and_fields() {
    let schema = schema();
    let names = |fields: &Value| -> Vec<String> {
        fields.as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap().to_owned()).collect()
    };
    let camels = |fields: &str| -> Vec<String> {
        fields.split_whitespace().map(|field| camel(field.trim_end_matches('?'))).collect()
    };
    assert_eq!(names(&schema["errorFields"]), camels(ERROR_FIELDS));
    let rows = schema["errors"].as_array().unwrap();
    assert_eq!(rows.len(), ERRORS.len());
    for (row, (code, class, base, fields)) in rows.iter().zip(ERRORS) {
        assert_eq!(
            (row["code"].as_str(), row["type"].as_str(), row["base"].as_str()),
            (Some(*code), Some(*class), *base)
        );
        assert_eq!(names(&row["fields"]), camels(fields), "{code}");
    }
    let one_of_each = [
        KitError::unsupported(Capability::Fork),
        KitError::not_found("m"),
        KitError::conflict("m"),
        KitError::busy("m"),
        KitError::invalid("m"),
        KitError::denied("m"),
        KitError::needs_setup("m"),
        KitError::failed("m"),
        KitError::host_exited(Some(3), Some(9), "last words"),
        KitError::protocol_mismatch("0.1", "9"),
        KitError::timeout("session.list"),
        KitError::closed(),
        KitError::gateway("m", "cause"),
    ];
    for (error, (code, _, _, fields)) in one_of_each.iter().zip(ERRORS) {
        let told =
            serde_json::to_value(error.clone().with_outcome(Outcome::Unknown).with_host(7, Some(8.into()))).unwrap();
        let got: BTreeSet<String> = told.as_object().unwrap().keys().cloned().collect();
        assert_eq!(told["code"], *code);
        assert_eq!(got, camels(ERROR_FIELDS).into_iter().chain(camels(fields)).collect(), "{code}");
    }
    // What is absent is left out, not null.
    let bare = serde_json::to_value(KitError::host_exited(None, None, "")).unwrap();
    let got: Vec<&String> = bare.as_object().unwrap().keys().collect();
    assert_eq!(got, ["code", "message", "stderrTail"]);
}

#[test]
fn calls_have_these_parameters_in_this_order() {
    let schema = schema();
    let listed = ["methods", "streams"].iter().flat_map(|list| schema[list].as_array().unwrap());
    let listed: BTreeMap<&str, &Value> = listed.map(|call| (call["name"].as_str().unwrap(), &call["params"])).collect();
    for (name, params) in CALLS {
        let got: Vec<String> = listed[name]
            .as_array()
            .unwrap_or_else(|| panic!("there is no {name}"))
            .iter()
            .map(|param| {
                let optional = if param["optional"] == true { "?" } else { "" };
                format!("{}{optional}", param["name"].as_str().unwrap())
            })
            .collect();
        let want: Vec<String> = params.split_whitespace().map(camel).collect();
        assert_eq!(got, want, "{name}");
    }
}
