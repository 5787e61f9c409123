//! The names of the fields, which are the same in every language: what apps and files rely on, held against the schema.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

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
    ("Question", "id text suggestions?"),
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
];

/// Words of enums, where the JSON form has words.
const WORDS: &[(&str, &str)] = &[
    ("PlanStatus", "todo now done"),
    ("ToolStatus", "running done failed"),
    ("EditState", "applied undone"),
    ("RunStatus", "running waiting_for_quota completed failed cancelled interrupted"),
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

#[test]
fn the_words_of_enums_are_these() {
    let schema = schema();
    for (name, words) in WORDS {
        let got: Vec<&str> =
            schema["$defs"][name]["x-open-enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(got, words.split(' ').collect::<Vec<_>>(), "{name}");
    }
}
