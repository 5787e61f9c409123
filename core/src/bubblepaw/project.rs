//! From host events to kit events. Pure.
//!
//! Every field of a durable kit event comes from its host event alone, so that live and replay give the same. Transient
//! ones also need what was shown so far, which is the [`Text`] of each stream.

use super::convert;
use super::sequence::{self, Cursor};
use super::text::{Shown, Text};
use super::wire::{EventData, HarnessEvent, HostState};
use crate::model::{
    ApprovalRequested, ApprovalResolved, ChatId, Event, EventKind, Gap, GapReason, Item, ItemId, MessageAssistant,
    MessageDelta, MessageSystem, PlanUpdated, QuestionAsked, QuestionResolved, RunFinished, RunId, RunStarted,
    RunWaiting, ToolFinished, ToolStarted,
};

/// Whether an event comes as it happens, or out of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Live,
    Replay,
}

/// The kit events of a host event with their positions, in order: at most two.
pub(crate) fn kinds(event: HarnessEvent) -> [Option<(u64, EventKind)>; 2] {
    let durable = event.durable;
    let at = |position: u64, kind: EventKind| [Some((position, kind)), None];
    match event.data {
        EventData::RunStarted { model } => at(0, RunStarted { model, resumed: false }.into()),
        EventData::RunWaitingForQuota { wait } => {
            at(0, RunWaiting { resume_at: wait.resume_at, reason: wait.reason }.into())
        }
        EventData::RunQuotaResumed {} => at(0, RunStarted { model: None, resumed: true }.into()),
        EventData::RunFinished { status, error, text } => {
            let message_id = provisional_id(event.run_id.as_ref());
            [
                text.map(|text| (0, MessageAssistant { message_id, text, provisional: true }.into())),
                Some((1, RunFinished { status: status.as_str().into(), error }.into())),
            ]
        }
        EventData::ToolStarted { call } => {
            at(0, ToolStarted { call: Item::ToolCall(convert::tool_call(call, event.run_id, durable)) }.into())
        }
        EventData::ToolFinished { call_id, result, is_error } => {
            at(0, ToolFinished { call_id, result: convert::result(result), is_error }.into())
        }
        EventData::ApprovalRequested { approval } => {
            at(0, ApprovalRequested { approval: convert::approval(*approval) }.into())
        }
        EventData::ApprovalResolved { approval_id, state, reason } => {
            at(0, ApprovalResolved { approval_id, state: convert::approval_state(&state), reason }.into())
        }
        EventData::HostStateChanged(HostState::Todo(todo)) => {
            at(0, PlanUpdated { steps: todo.into_iter().map(convert::plan_step).collect() }.into())
        }
        EventData::HostStateChanged(HostState::Question(None)) => at(0, QuestionResolved { question_id: None }.into()),
        EventData::HostStateChanged(HostState::Question(Some(question))) => {
            at(1, QuestionAsked { question: convert::question(question) }.into())
        }
        EventData::OutputRecord { output } => match convert::output(*output) {
            Some(mut line) => {
                line.run = line.run.or(event.run_id);
                line.created_at = line.created_at.or(event.at);
                at(0, MessageSystem { message: Item::SystemMessage(line), after_id: None }.into())
            }
            None => [None, None],
        },
        EventData::HostStateChanged(
            HostState::ChildQuestion(_) | HostState::ChildQuestionAnswer(_) | HostState::Other { .. },
        )
        | EventData::ModelRequest {}
        | EventData::TextDelta { .. }
        | EventData::Paragraph { .. }
        | EventData::SteeringAccepted {}
        | EventData::FollowupQueued {}
        | EventData::UsageLastRequest { .. }
        | EventData::ChildRunStateChanged { .. }
        | EventData::ContextCompaction { .. }
        | EventData::SessionSettled {}
        | EventData::Unknown { .. }
        | EventData::Malformed { .. } => [None, None],
    }
}

/// The provisional message of a run, as a durable reply names it.
fn provisional_id(run: Option<&RunId>) -> ItemId {
    format!("provisional:{}", run.map_or("", RunId::as_str)).into()
}

/// Whether a live event of this type asks for a reload.
pub(crate) fn wants_reload(data: &EventData) -> bool {
    match data {
        // The user's message is in the state only.
        EventData::RunStarted { .. }
        // So are the reply where it has no text, and the totals.
        | EventData::RunFinished { .. }
        | EventData::UsageLastRequest { .. }
        // The queue's ids are in the state only.
        | EventData::SteeringAccepted {}
        | EventData::FollowupQueued {}
        | EventData::HostStateChanged(
            HostState::Question(None) | HostState::ChildQuestion(_) | HostState::ChildQuestionAnswer(_),
        )
        | EventData::ChildRunStateChanged { .. }
        | EventData::SessionSettled {}
        // Whether it is applied already, the host's context alone tells.
        | EventData::ContextCompaction { .. }
        | EventData::Malformed { .. } => true,
        EventData::HostStateChanged(HostState::Todo(_) | HostState::Question(Some(_)) | HostState::Other { .. })
        | EventData::RunWaitingForQuota { .. }
        | EventData::RunQuotaResumed {}
        | EventData::ModelRequest {}
        | EventData::TextDelta { .. }
        | EventData::Paragraph { .. }
        | EventData::ToolStarted { .. }
        | EventData::ToolFinished { .. }
        | EventData::ApprovalRequested { .. }
        | EventData::ApprovalResolved { .. }
        | EventData::OutputRecord { .. }
        | EventData::Unknown { .. } => false,
    }
}

/// One stream's way from host events to kit events.
#[derive(Debug, Clone)]
pub(crate) struct Projector {
    chat: ChatId,
    /// Up to where all is delivered.
    pub(crate) cursor: Cursor,
    text: Text,
}

impl Projector {
    pub(crate) fn new(chat: ChatId, cursor: Cursor) -> Self {
        Projector { chat, cursor, text: Text::default() }
    }

    /// Transient events were lost.
    pub(crate) fn lost(&mut self) {
        self.text.lost();
    }

    /// A transient event of the adapter's own.
    pub(crate) fn transient(&self, kind: impl Into<EventKind>, run: Option<RunId>) -> Event {
        Event {
            chat: self.chat.clone(),
            seq: sequence::kit_final(self.cursor.host),
            durable: false,
            run,
            at: None,
            kind: kind.into(),
        }
    }

    /// The gap that says that only the display is in doubt.
    pub(crate) fn doubt(&self, reason: GapReason) -> Event {
        self.transient(Gap { reason, lost: false, snapshot_seq: None }, None)
    }

    /// Projects one host event, giving each kit event to `give`. A durable event that was delivered already gives
    /// nothing. What it asks for counts for live events only: a replay is followed by one reload anyway.
    pub(crate) fn project(&mut self, event: HarnessEvent, origin: Origin, give: &mut impl FnMut(Event)) -> bool {
        if !event.durable {
            return self.transients(event, give);
        }
        if self.cursor.covers_whole(event.sequence) || event.sequence > sequence::MAX_HOST_SEQUENCE {
            return false;
        }
        let mut asked = wants_reload(&event.data);
        match &event.data {
            EventData::RunStarted { .. } => {
                self.text.run_started(event.run_id.as_ref());
                if origin == Origin::Replay {
                    // The fragments since then were not seen.
                    self.text.lost();
                }
            }
            EventData::RunFinished { .. } => self.text.run_finished(),
            EventData::ToolStarted { .. } | EventData::ToolFinished { .. } => self.text.tool(),
            _ => {}
        }
        let malformed = matches!(event.data, EventData::Malformed { .. });
        let (host, run, time) = (event.sequence, event.run_id.clone(), event.at);
        for (position, kind) in kinds(event).into_iter().flatten() {
            if self.cursor.covers(host, position) {
                continue;
            }
            let seq = sequence::kit(host, position);
            give(Event { chat: self.chat.clone(), seq, durable: true, run: run.clone(), at: time, kind });
        }
        self.cursor = Cursor::whole(host);
        if malformed {
            give(self.doubt(GapReason::Mismatch));
        }
        if origin == Origin::Replay {
            asked = false;
        }
        asked
    }

    fn transients(&mut self, event: HarnessEvent, give: &mut impl FnMut(Event)) -> bool {
        let (chat, seq) = (&self.chat, sequence::kit_final(self.cursor.host));
        let (run, at) = (&event.run_id, event.at);
        let mut emit = |kind: EventKind| {
            give(Event { chat: chat.clone(), seq, durable: false, run: run.clone(), at, kind });
        };
        let mut show = |shown: Shown| match shown {
            Shown::Delta { message_id, offset, text } => emit(MessageDelta { message_id, offset, text }.into()),
            Shown::Mismatch => emit(Gap { reason: GapReason::Mismatch, lost: false, snapshot_seq: None }.into()),
        };
        match event.data {
            EventData::ModelRequest {} => self.text.model_request(run.as_ref(), &mut show),
            EventData::TextDelta { text } => {
                self.text.delta(run.as_ref(), text, &mut show);
                false
            }
            EventData::Paragraph { text } => self.text.paragraph(run.as_ref(), &text, &mut show),
            _ => {
                let (asked, run) = (wants_reload(&event.data), run.clone());
                for (_, kind) in kinds(event).into_iter().flatten() {
                    give(Event { chat: chat.clone(), seq, durable: false, run: run.clone(), at, kind });
                }
                asked
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> HarnessEvent {
        serde_json::from_value(value).unwrap()
    }

    fn projected(projector: &mut Projector, value: serde_json::Value, origin: Origin) -> Vec<Event> {
        let mut events = Vec::new();
        projector.project(read(value), origin, &mut |event| events.push(event));
        events
    }

    /// One host event for each row of the table.
    fn sample(host: &str) -> serde_json::Value {
        let data = match host {
            "run_started" => json!({"model": "p/m"}),
            "run_waiting_for_quota" => json!({"wait": {"reason": "r"}}),
            "run_finished" => json!({"status": "completed", "text": "t"}),
            "tool_started" => json!({"call": {"call_id": "c", "name": "n", "arguments": {}}}),
            "tool_finished" => json!({"call_id": "c", "result": 1}),
            "approval_requested" => json!({"approval": {"approval_id": "a", "session_id": "s", "state": "pending"}}),
            "approval_resolved" => json!({"approval_id": "a", "state": "approved_session"}),
            "host_state_changed todo" => json!({"key": "todo", "value": [{"text": "t", "status": "in_progress"}]}),
            "host_state_changed question null" => json!({"key": "question", "value": null}),
            "host_state_changed question" => json!({"key": "question", "value": {"question_id": "q", "text": "t"}}),
            "output.record" => json!({"output": {"output_id": "o", "kind": "text", "text": "t"}}),
            _ => json!({}),
        };
        let event_type = host.split(' ').next().unwrap();
        json!({"sequence": 9, "type": event_type, "data": data, "run_id": "r"})
    }

    #[test]
    fn the_table_of_positions_is_what_projection_does() {
        let mut hosts: Vec<_> = sequence::TABLE.iter().map(|row| row.host).collect();
        hosts.dedup();
        for host in hosts {
            let rows: Vec<_> = sequence::TABLE.iter().filter(|row| row.host == host).collect();
            let got: Vec<_> = kinds(read(sample(host))).into_iter().flatten().collect();
            let got: Vec<_> = got.iter().map(|(position, kind)| (*position, kind.name())).collect();
            assert_eq!(got, rows.iter().map(|row| (row.position, row.kit)).collect::<Vec<_>>(), "{host}");
        }
    }

    #[test]
    fn types_that_the_table_leaves_out_give_no_durable_event() {
        let listed: Vec<_> = sequence::TABLE.iter().map(|row| row.host.split(' ').next().unwrap()).collect();
        let data = json!({"text": "t", "child": "k", "state": "running", "event_id": "e", "kind": "k", "trigger": "t"});
        for event_type in EventData::TYPES.iter().filter(|known| !listed.contains(known)) {
            let event = read(json!({"sequence": 9, "type": event_type, "data": data}));
            assert!(!matches!(event.data, EventData::Malformed { .. }));
            assert_eq!(kinds(event), [None, None], "{event_type}");
        }
    }

    #[test]
    fn live_and_replay_give_the_same_durable_events() {
        for row in sequence::TABLE {
            let mut live = Projector::new("s".into(), Cursor::START);
            let mut replay = live.clone();
            assert_eq!(
                projected(&mut live, sample(row.host), Origin::Live),
                projected(&mut replay, sample(row.host), Origin::Replay)
            );
            assert!(projected(&mut live, sample(row.host), Origin::Live).is_empty(), "a duplicate gives nothing");
        }
    }

    #[test]
    fn a_cursor_in_the_middle_drops_the_positions_up_to_it() {
        let mut projector = Projector::new("s".into(), Cursor::from_kit(sequence::kit(9, 0)));
        let events = projected(&mut projector, sample("run_finished"), Origin::Replay);
        assert_eq!(events.iter().map(|event| event.kind.name()).collect::<Vec<_>>(), ["run.finished"]);
    }

    #[test]
    fn nested_tools_are_transient_and_consume_no_sequence() {
        let mut projector = Projector::new("s".into(), Cursor::whole(4));
        let mut nested = sample("tool_started");
        nested["durable"] = json!(false);
        let events = projected(&mut projector, nested, Origin::Live);
        assert_eq!((events.len(), events[0].durable, events[0].seq), (1, false, sequence::kit_final(4)));
        let EventKind::ToolStarted(ToolStarted { call: Item::ToolCall(call) }) = &events[0].kind else { panic!() };
        assert!(!call.durable);
        assert_eq!(projector.cursor, Cursor::whole(4));
    }

    #[test]
    fn a_malformed_event_puts_the_display_in_doubt_and_ends_nothing() {
        let mut projector = Projector::new("s".into(), Cursor::START);
        let event = HarnessEvent {
            sequence: 5,
            run_id: None,
            at: None,
            durable: true,
            data: EventData::Malformed { event_type: "tool_started".into() },
        };
        let mut events = Vec::new();
        assert!(projector.project(event, Origin::Live, &mut |event| events.push(event)));
        assert_eq!(events.len(), 1);
        assert!(matches!(&events[0].kind, EventKind::Gap(Gap { reason: GapReason::Mismatch, lost: false, .. })));
        assert_eq!(projector.cursor, Cursor::whole(5));
    }
}
