//! Events and notifications. They come by the million, so they are read in one pass: where `type` stands before
//! `data` (as hosts write it) the data goes straight into its struct.

use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::shape::*;
use crate::model::{ApprovalId, ChatId, ItemId, QuestionId, RunId, Time};

/// An event of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct HarnessEvent {
    /// Its own sequence, or, on a transient event, the last durable event's.
    pub sequence: u64,
    /// The run it belongs to.
    pub run_id: Option<RunId>,
    /// When it happened.
    pub at: Option<Time>,
    /// Whether it is kept and replayed.
    pub durable: bool,
    /// What happened.
    pub data: EventData,
}

macro_rules! event_types {
    ($($(#[$doc:meta])* $variant:ident = $wire:literal { $($(#[doc = $fdoc:literal])* $(#[serde($($serde:tt)*)])? $field:ident: $ty:ty,)* })*) => {
        /// What happened, by the type of the event.
        #[derive(Debug, Clone, PartialEq)]
        pub enum EventData {
            $($(#[$doc])* $variant { $($(#[doc = $fdoc])* $field: $ty,)* },)*
            /// A change of the host's state.
            HostStateChanged(HostState),
            /// A type that this version doesn't know.
            Unknown {
                /// The type, as the host wrote it.
                event_type: String,
            },
            /// A known type whose data doesn't fit.
            Malformed {
                /// The type, as the host wrote it.
                event_type: String,
            },
        }

        impl EventData {
            /// The types of the contract.
            pub const TYPES: &'static [&'static str] = &[$($wire,)* HOST_STATE_CHANGED];

            /// The type on the wire.
            pub fn event_type(&self) -> &str {
                match self {
                    $(EventData::$variant { .. } => $wire,)*
                    EventData::HostStateChanged(_) => HOST_STATE_CHANGED,
                    EventData::Unknown { event_type } | EventData::Malformed { event_type } => event_type,
                }
            }

            fn read<'de, S: DataSource<'de>>(event_type: &str, source: S) -> Result<Self, S::Error> {
                match event_type {
                    $($wire => {
                        #[derive(Deserialize)]
                        struct Data { $($(#[serde($($serde)*)])? $field: $ty,)* }
                        let Some(Data { $($field,)* }) = source.data::<Data>()? else {
                            return Self::without_data(event_type).ok_or_else(|| S::Error::custom("missing field `data`"));
                        };
                        Ok(EventData::$variant { $($field,)* })
                    })*
                    HOST_STATE_CHANGED => match source.data::<HostState>()? {
                        Some(state) => Ok(EventData::HostStateChanged(state)),
                        None => Err(S::Error::custom("missing field `data`")),
                    },
                    other => {
                        source.data::<IgnoredAny>()?;
                        Ok(EventData::Unknown { event_type: other.to_owned() })
                    }
                }
            }
        }

        impl Serialize for DataForm<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.0 {
                    $(EventData::$variant { $($field,)* } => {
                        #[derive(Serialize)]
                        struct Data<'a> {
                            $($(#[serde($($serde)*)])? $field: &'a $ty,)*
                            #[serde(skip)]
                            _life: std::marker::PhantomData<&'a ()>,
                        }
                        Data { $($field,)* _life: std::marker::PhantomData }.serialize(serializer)
                    })*
                    EventData::HostStateChanged(state) => state.serialize(serializer),
                    EventData::Unknown { .. } | EventData::Malformed { .. } => serializer.serialize_map(Some(0))?.end(),
                }
            }
        }
    };
}

struct DataForm<'a>(&'a EventData);

const HOST_STATE_CHANGED: &str = "host_state_changed";

event_types! {
    /// A run started.
    RunStarted = "run_started" {
        /// The model, as `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    }
    /// A run waits for quota.
    RunWaitingForQuota = "run_waiting_for_quota" {
        /// What it waits for.
        wait: Wait,
    }
    /// A waiting run goes on.
    RunQuotaResumed = "run_quota_resumed" {}
    /// A run ended.
    RunFinished = "run_finished" {
        /// Where it is.
        status: String,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    }
    /// A new model request begins. Transient.
    ModelRequest = "model_request" {}
    /// A piece of text. Transient.
    TextDelta = "text_delta" {
        /// The text.
        text: String,
    }
    /// A whole paragraph, confirmed. Transient.
    Paragraph = "paragraph" {
        /// The text.
        text: String,
    }
    /// A tool was called.
    ToolStarted = "tool_started" {
        /// The call.
        call: ToolCall,
    }
    /// A tool ended.
    ToolFinished = "tool_finished" {
        /// The call's id.
        call_id: ItemId,
        /// What it gave.
        result: Value,
        /// Whether the result is an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    }
    /// The agent asks for approval.
    ApprovalRequested = "approval_requested" {
        /// The approval.
        approval: Box<Approval>,
    }
    /// An approval was decided, or expired.
    ApprovalResolved = "approval_resolved" {
        /// The approval's id.
        approval_id: ApprovalId,
        /// Where it is.
        state: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
    /// A steering input was taken.
    SteeringAccepted = "steering_accepted" {}
    /// A text was queued.
    FollowupQueued = "followup_queued" {}
    /// A publication.
    OutputRecord = "output.record" {
        /// The publication.
        output: Box<Output>,
    }
    /// Tokens of the last model request.
    UsageLastRequest = "usage.last_request" {
        /// Tokens read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
        /// Tokens written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
    }
    /// A child's run changed.
    ChildRunStateChanged = "child_run_state_changed" {
        /// The child's session.
        child: ChatId,
        /// Where it is.
        state: String,
    }
    /// The context was compacted.
    ContextCompaction = "context_compaction" {
        /// The compaction's id.
        event_id: String,
        /// What kind it is.
        kind: String,
        /// What set it off.
        trigger: String,
    }
    /// The session came to rest.
    SessionSettled = "session_settled" {}
}

impl EventData {
    /// Types whose data is empty may leave it out.
    fn without_data(event_type: &str) -> Option<Self> {
        Some(match event_type {
            "run_started" => EventData::RunStarted { model: None },
            "run_quota_resumed" => EventData::RunQuotaResumed {},
            "model_request" => EventData::ModelRequest {},
            "steering_accepted" => EventData::SteeringAccepted {},
            "followup_queued" => EventData::FollowupQueued {},
            "usage.last_request" => EventData::UsageLastRequest { input_tokens: None, output_tokens: None },
            "session_settled" => EventData::SessionSettled {},
            _ => return None,
        })
    }

    /// Types that are transient whatever the event says.
    fn always_transient(&self) -> bool {
        matches!(self, EventData::TextDelta { .. } | EventData::Paragraph { .. } | EventData::ModelRequest {})
    }
}

/// A change of the host's state, by its key.
#[derive(Debug, Clone, PartialEq)]
pub enum HostState {
    /// The plan, whole.
    Todo(Vec<Todo>),
    /// The session's question, or none any more.
    Question(Option<Question>),
    /// A child asks.
    ChildQuestion(ChildQuestionValue),
    /// A child's question was answered.
    ChildQuestionAnswer(ChildAnswerValue),
    /// Another key; ignored.
    Other {
        /// The key.
        key: String,
    },
}

shapes! {
    /// A child asks.
    ChildQuestionValue {
        /// The child's session.
        child: ChatId,
        /// The question that waits.
        question: Question,
    }
    /// A child's question was answered.
    ChildAnswerValue {
        /// The child's session.
        child: ChatId,
        /// The question's id.
        question_id: QuestionId,
    }
    /// Live notifications were dropped.
    EventsGap {
        /// The session's id.
        session_id: ChatId,
        /// The last durable sequence before the loss.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_sequence: Option<u64>,
    }
    /// An event of a session.
    EventNotification {
        /// The session's id.
        session_id: ChatId,
        /// The event.
        event: HarnessEvent,
    }
}

impl<'de> Deserialize<'de> for HostState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Rare and small: a second pass over the value costs nothing that shows.
        #[derive(Deserialize)]
        struct Form {
            key: String,
            #[serde(default)]
            value: Value,
        }
        let Form { key, value } = Form::deserialize(deserializer)?;
        let custom = |error: serde_json::Error| D::Error::custom(error);
        Ok(match key.as_str() {
            "todo" => HostState::Todo(Vec::deserialize(value).map_err(custom)?),
            "question" => HostState::Question(Option::deserialize(value).map_err(custom)?),
            "child_question" => HostState::ChildQuestion(Deserialize::deserialize(value).map_err(custom)?),
            "child_question_answer" => HostState::ChildQuestionAnswer(Deserialize::deserialize(value).map_err(custom)?),
            _ => HostState::Other { key },
        })
    }
}

impl Serialize for HostState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self {
            HostState::Todo(todo) => {
                map.serialize_entry("key", "todo")?;
                map.serialize_entry("value", todo)?;
            }
            HostState::Question(question) => {
                map.serialize_entry("key", "question")?;
                map.serialize_entry("value", question)?;
            }
            HostState::ChildQuestion(value) => {
                map.serialize_entry("key", "child_question")?;
                map.serialize_entry("value", value)?;
            }
            HostState::ChildQuestionAnswer(value) => {
                map.serialize_entry("key", "child_question_answer")?;
                map.serialize_entry("value", value)?;
            }
            HostState::Other { key } => {
                map.serialize_entry("key", key)?;
                map.serialize_entry("value", &Value::Null)?;
            }
        }
        map.end()
    }
}

impl Serialize for HarnessEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sequence", &self.sequence)?;
        map.serialize_entry("type", self.data.event_type())?;
        map.serialize_entry("data", &DataForm(&self.data))?;
        if let Some(run_id) = &self.run_id {
            map.serialize_entry("run_id", run_id)?;
        }
        if let Some(at) = &self.at {
            map.serialize_entry("at", at)?;
        }
        if !self.durable {
            map.serialize_entry("durable", &false)?;
        }
        map.end()
    }
}

/// Where the data of an event comes from: straight from the map, or from what was kept of it.
trait DataSource<'de> {
    type Error: serde::de::Error;
    /// None where there is no data, or null.
    fn data<T: Deserialize<'de>>(self) -> Result<Option<T>, Self::Error>;
}

struct FromMap<'a, A>(&'a mut A);

impl<'de, A: MapAccess<'de>> DataSource<'de> for FromMap<'_, A> {
    type Error = A::Error;
    fn data<T: Deserialize<'de>>(self) -> Result<Option<T>, A::Error> {
        self.0.next_value::<Option<T>>()
    }
}

struct FromKept<E>(Option<Box<RawValue>>, std::marker::PhantomData<E>);

impl<'de, E: serde::de::Error> DataSource<'de> for FromKept<E> {
    type Error = E;
    fn data<T: Deserialize<'de>>(self) -> Result<Option<T>, E> {
        match self.0 {
            None => Ok(None),
            // `data` stood before `type`, which costs a detour over an owned value.
            Some(raw) => {
                serde_json::from_str::<Value>(raw.get()).and_then(Option::<T>::deserialize_owned).map_err(E::custom)
            }
        }
    }
}

/// Reads any `Deserialize` type from an owned value.
trait DeserializeOwnedValue<'de>: Deserialize<'de> {
    fn deserialize_owned(value: Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }
}
impl<'de, T: Deserialize<'de>> DeserializeOwnedValue<'de> for T {}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    Sequence,
    Type,
    Data,
    RunId,
    At,
    Durable,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for HarnessEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Event;
        impl<'de> Visitor<'de> for Event {
            type Value = HarnessEvent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HarnessEvent, A::Error> {
                let (mut sequence, mut event_type, mut data, mut kept) = (None, None::<TypeName>, None, None);
                let (mut run_id, mut at, mut durable) = (None, None, None::<bool>);
                while let Some(key) = map.next_key::<Key>()? {
                    match key {
                        Key::Sequence => sequence = Some(map.next_value()?),
                        Key::Type => event_type = Some(map.next_value()?),
                        Key::Data => match &event_type {
                            Some(known) => data = Some(EventData::read(known.as_str(), FromMap(&mut map))?),
                            None => kept = Some(map.next_value::<Box<RawValue>>()?),
                        },
                        Key::RunId => run_id = map.next_value()?,
                        Key::At => at = map.next_value()?,
                        Key::Durable => durable = map.next_value()?,
                        Key::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                let sequence = sequence.ok_or_else(|| A::Error::missing_field("sequence"))?;
                let event_type = event_type.ok_or_else(|| A::Error::missing_field("type"))?;
                let data = match data {
                    Some(data) => data,
                    None => EventData::read(event_type.as_str(), FromKept(kept, std::marker::PhantomData::<A::Error>))?,
                };
                let durable = durable.unwrap_or(true) && !data.always_transient();
                Ok(HarnessEvent { sequence, run_id, at, durable, data })
            }
        }
        deserializer.deserialize_map(Event)
    }
}

/// The type of an event: a known word without an allocation.
enum TypeName {
    Known(&'static str),
    Other(String),
}

impl TypeName {
    fn as_str(&self) -> &str {
        match self {
            TypeName::Known(word) => word,
            TypeName::Other(word) => word,
        }
    }
}

impl<'de> Deserialize<'de> for TypeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = TypeName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the type of an event")
            }
            fn visit_str<E>(self, word: &str) -> Result<TypeName, E> {
                Ok(match EventData::TYPES.iter().find(|known| **known == word) {
                    Some(known) => TypeName::Known(known),
                    None => TypeName::Other(word.to_owned()),
                })
            }
        }
        deserializer.deserialize_str(Word)
    }
}

/// Reads an event whose data may not fit: with a sequence and a type it is an event all the same, a malformed one.
pub fn lenient_event(raw: &RawValue) -> Result<HarnessEvent, serde_json::Error> {
    #[derive(Deserialize)]
    struct Frame {
        sequence: u64,
        #[serde(rename = "type")]
        event_type: String,
        #[serde(default)]
        durable: Option<bool>,
    }
    match serde_json::from_str::<HarnessEvent>(raw.get()) {
        Ok(event) => Ok(event),
        Err(_) => {
            let Frame { sequence, event_type, durable } = serde_json::from_str(raw.get())?;
            let data = EventData::Malformed { event_type };
            Ok(HarnessEvent { sequence, run_id: None, at: None, durable: durable.unwrap_or(true), data })
        }
    }
}

/// A page of events, unread: for a page in which an event doesn't fit.
#[derive(Debug, Deserialize)]
pub struct RawPage<'a> {
    /// The events.
    #[serde(borrow)]
    pub events: Vec<&'a RawValue>,
    /// Whether there are more.
    pub has_more: bool,
    /// Whether events after the cursor are gone.
    #[serde(default)]
    pub resync: Option<bool>,
}

/// What the host tells without being asked.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // Nearly all are events: a box would cost an allocation each.
pub enum Notification {
    /// An event of a session.
    Event(EventNotification),
    /// Live notifications of a session were dropped.
    Gap(EventsGap),
}

impl Notification {
    /// The method of an event.
    pub const EVENT: &'static str = "event";
    /// The method of a gap.
    pub const GAP: &'static str = "events.gap";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> HarnessEvent {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn data_before_type_reads_the_same() {
        let usual =
            read(r#"{"sequence":3,"type":"tool_finished","data":{"call_id":"c","result":{"a":[1]}},"run_id":"r"}"#);
        let other =
            read(r#"{"data":{"result":{"a":[1]},"call_id":"c"},"run_id":"r","type":"tool_finished","sequence":3}"#);
        assert_eq!(usual, other);
        assert!(usual.durable);
    }

    #[test]
    fn every_type_is_written_as_it_is_read() {
        for text in [
            r#"{"sequence":1,"type":"run_started","data":{"model":"m"},"run_id":"r","at":"2026-01-02T03:04:05Z"}"#,
            r#"{"sequence":1,"type":"run_waiting_for_quota","data":{"wait":{"reason":"quota"}}}"#,
            r#"{"sequence":1,"type":"run_quota_resumed","data":{}}"#,
            r#"{"sequence":1,"type":"run_finished","data":{"status":"failed","error":"e"}}"#,
            r#"{"sequence":1,"type":"model_request","data":{},"durable":false}"#,
            r#"{"sequence":1,"type":"text_delta","data":{"text":"t"},"durable":false}"#,
            r#"{"sequence":1,"type":"paragraph","data":{"text":"t"},"durable":false}"#,
            r#"{"sequence":1,"type":"tool_started","data":{"call":{"call_id":"c","name":"n","arguments":{"b":1,"a":2}}}}"#,
            r#"{"sequence":1,"type":"tool_finished","data":{"call_id":"c","result":null,"is_error":true}}"#,
            r#"{"sequence":1,"type":"approval_requested","data":{"approval":{"approval_id":"a","session_id":"s","state":"pending"}}}"#,
            r#"{"sequence":1,"type":"approval_resolved","data":{"approval_id":"a","state":"denied","reason":"no"}}"#,
            r#"{"sequence":1,"type":"host_state_changed","data":{"key":"todo","value":[{"text":"t","status":"done"}]}}"#,
            r#"{"sequence":1,"type":"host_state_changed","data":{"key":"question","value":null}}"#,
            r#"{"sequence":1,"type":"host_state_changed","data":{"key":"child_question","value":{"child":"k","question":{"question_id":"q","text":"t"}}}}"#,
            r#"{"sequence":1,"type":"host_state_changed","data":{"key":"child_question_answer","value":{"child":"k","question_id":"q"}}}"#,
            r#"{"sequence":1,"type":"steering_accepted","data":{}}"#,
            r#"{"sequence":1,"type":"followup_queued","data":{}}"#,
            r#"{"sequence":1,"type":"output.record","data":{"output":{"output_id":"o","kind":"text","text":"t"}}}"#,
            r#"{"sequence":1,"type":"usage.last_request","data":{"input_tokens":1}}"#,
            r#"{"sequence":1,"type":"child_run_state_changed","data":{"child":"k","state":"running"}}"#,
            r#"{"sequence":1,"type":"context_compaction","data":{"event_id":"e","kind":"fold","trigger":"auto"}}"#,
            r#"{"sequence":1,"type":"session_settled","data":{}}"#,
        ] {
            assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        }
    }

    #[test]
    fn an_unknown_type_is_carried() {
        let event = read(r#"{"sequence":9,"type":"brand_new","data":{"x":[1,{"y":2}]},"extra":true}"#);
        assert_eq!(event.data, EventData::Unknown { event_type: "brand_new".into() });
        assert_eq!(read(r#"{"sequence":9,"type":"brand_new"}"#).data.event_type(), "brand_new");
    }

    #[test]
    fn empty_data_may_be_left_out_and_null_counts_as_absent() {
        assert_eq!(read(r#"{"sequence":1,"type":"session_settled"}"#).data, EventData::SessionSettled {});
        assert_eq!(read(r#"{"sequence":1,"type":"session_settled","data":null,"run_id":null}"#).run_id, None);
        let started = read(r#"{"sequence":1,"type":"run_started","data":{"model":null}}"#);
        assert_eq!(started.data, EventData::RunStarted { model: None });
    }

    #[test]
    fn text_is_transient_whatever_the_host_says() {
        assert!(!read(r#"{"sequence":1,"type":"text_delta","data":{"text":""},"durable":true}"#).durable);
    }

    #[test]
    fn data_that_does_not_fit_is_an_event_all_the_same() {
        for text in [
            r#"{"sequence":7,"type":"tool_started","data":{}}"#,
            r#"{"sequence":7,"type":"tool_started"}"#,
            r#"{"sequence":7,"type":"tool_started","data":{"call":3}}"#,
        ] {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            let event = lenient_event(&raw).unwrap();
            assert_eq!((event.sequence, event.data), (7, EventData::Malformed { event_type: "tool_started".into() }));
        }
        let raw: Box<RawValue> = serde_json::from_str(r#"{"type":"tool_started","data":{}}"#).unwrap();
        assert!(lenient_event(&raw).is_err());
    }
}
