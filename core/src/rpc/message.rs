//! Messages out of lines, in one pass: pure, no I/O.
//!
//! The parameters of a notification are read straight into the caller's type while the line is read, because they are
//! most of the traffic. Only a line that doesn't fit is read a second time, to tell what was wrong with it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The notifications that a client of the engine wants, and their type.
pub trait Notifications: Send + 'static {
    /// What they are read into.
    type Item: Send + 'static;

    /// Reads the parameters of `method`. `None` is a method that is of no interest; `params` is then best read as
    /// [`IgnoredAny`], because a reader that leaves it untouched costs a second pass over the line.
    fn read<'de, D: Deserializer<'de>>(method: &str, params: D) -> Result<Option<Self::Item>, D::Error>;
}

/// What a line is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Message<T> {
    /// A notification of interest.
    Notification(T),
    /// A notification of no interest.
    Uninteresting,
    /// A notification of interest whose parameters don't fit.
    Malformed {
        /// Its method.
        method: String,
        /// Its parameters.
        params: Option<Box<RawValue>>,
    },
    /// The answer to a request.
    Answer {
        /// The request's id, where it can be one of ours.
        id: Option<u64>,
        /// The answer.
        answer: Answer,
    },
    /// A request of the host.
    Request {
        /// Its id, as it was written.
        id: Box<RawValue>,
    },
    /// Not a JSON-RPC message.
    Noise,
}

/// What a request was answered with.
#[derive(Debug)]
pub enum Answer {
    /// Its result: where it stands in the line.
    Result(Range<usize>),
    /// An error.
    Error(ErrorObject),
    /// Neither, or an error that is none.
    Unreadable,
}

/// The error of an answer.
#[derive(Clone, PartialEq, Deserialize)]
pub struct ErrorObject {
    /// Its code.
    #[serde(deserialize_with = "whole_number")]
    pub code: i64,
    /// Its message.
    #[serde(default, deserialize_with = "text_or_empty")]
    pub message: String,
    /// Its data.
    #[serde(default)]
    pub data: Option<Value>,
}

impl fmt::Debug for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Message and data are the host's and may hold what a person typed.
        f.debug_struct("ErrorObject").field("code", &self.code).finish_non_exhaustive()
    }
}

fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    // Hosts in languages with one kind of number write -32000.0.
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(whole)).ok_or_else(|| D::Error::custom("not a whole number"))
}

fn text_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        _ => String::new(),
    })
}

/// Reads an id of ours as it was written; `17.0` is 17.
pub(super) fn read_id(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
    })
}

/// Reads one line.
pub fn read_message<N: Notifications>(line: &[u8]) -> Message<N::Item> {
    std::str::from_utf8(line).map_or(Message::Noise, read_text::<N>)
}

/// Reads one line that is text: checked once for all of it, it needn't be for each string.
pub fn read_text<N: Notifications>(line: &str) -> Message<N::Item> {
    if !line.trim_start_matches([' ', '\t', '\r']).starts_with('{') {
        return Message::Noise;
    }
    match read_line::<N>(line) {
        Ok(message) => message,
        Err(_) => read_misfit::<N>(line),
    }
}

fn read_line<N: Notifications>(line: &str) -> Result<Message<N::Item>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let message = deserializer.deserialize_map(Envelope::<N>(line, PhantomData))?;
    deserializer.end()?;
    Ok(message)
}

/// Tells what a line is that didn't fit: a notification with a body of another shape, or noise.
fn read_misfit<N: Notifications>(line: &str) -> Message<N::Item> {
    #[derive(Deserialize)]
    struct Loose {
        method: Option<String>,
        #[serde(default)]
        params: Option<Box<RawValue>>,
        #[serde(default)]
        id: Option<Box<RawValue>>,
    }
    match serde_json::from_str::<Loose>(line) {
        Ok(Loose { id: Some(id), method: Some(_), .. }) => Message::Request { id },
        Ok(Loose { method: Some(method), params, .. }) => match read_apart::<N>(&method, params.as_deref()) {
            Ok(Some(item)) => Message::Notification(item),
            Ok(None) => Message::Uninteresting,
            Err(_) => Message::Malformed { method, params },
        },
        _ => Message::Noise,
    }
}

/// Reads parameters that are not in the stream any more. Absent ones are read as an object without members.
fn read_apart<N: Notifications>(method: &str, params: Option<&RawValue>) -> Result<Option<N::Item>, serde_json::Error> {
    N::read(method, &mut serde_json::Deserializer::from_str(params.map_or("{}", RawValue::get)))
}

enum Field {
    Method,
    Params,
    Id,
    Result,
    Error,
    Other,
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, name: &str) -> Result<Field, E> {
                Ok(match name {
                    "method" => Field::Method,
                    "params" => Field::Params,
                    "id" => Field::Id,
                    "result" => Field::Result,
                    "error" => Field::Error,
                    _ => Field::Other,
                })
            }
        }
        deserializer.deserialize_identifier(Name)
    }
}

/// A string that is borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrow)
    }
}

/// Reads the parameters of a method in place.
struct Params<'a, N>(&'a str, PhantomData<N>);

impl<'de, N: Notifications> DeserializeSeed<'de> for Params<'_, N> {
    type Value = Option<N::Item>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        N::read(self.0, deserializer)
    }
}

/// The message of a line.
struct Envelope<'a, N>(&'a str, PhantomData<N>);

impl<'de, N: Notifications> Visitor<'de> for Envelope<'_, N> {
    type Value = Message<N::Item>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut method: Option<Text<'de>> = None;
        let mut item: Option<Option<N::Item>> = None;
        let mut params: Option<&'de RawValue> = None;
        let mut id: Option<&'de RawValue> = None;
        let mut result: Option<&'de RawValue> = None;
        let mut error: Option<&'de RawValue> = None;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Method => method = Some(map.next_value()?),
                Field::Params => match &method {
                    Some(method) if id.is_none() => {
                        item = Some(map.next_value_seed(Params::<N>(&method.0, PhantomData))?);
                    }
                    _ => params = Some(map.next_value()?),
                },
                Field::Id => id = Some(map.next_value()?),
                Field::Result => result = Some(map.next_value()?),
                Field::Error => error = Some(map.next_value()?),
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let id = id.filter(|id| id.get() != "null");
        let error = error.filter(|error| error.get() != "null");
        let Some(method) = method else {
            let answer = match (error, result) {
                (Some(error), _) => serde_json::from_str(error.get()).map_or(Answer::Unreadable, Answer::Error),
                (None, Some(result)) => Answer::Result(place(self.0, result.get())),
                (None, None) if id.is_some() => Answer::Unreadable,
                (None, None) => return Ok(Message::Noise),
            };
            return Ok(Message::Answer { id: id.and_then(|id| read_id(id.get())), answer });
        };
        if let Some(id) = id {
            return Ok(Message::Request { id: id.to_owned() });
        }
        let item = match item {
            Some(item) => item,
            None => read_apart::<N>(&method.0, params).map_err(A::Error::custom)?,
        };
        Ok(item.map_or(Message::Uninteresting, Message::Notification))
    }
}

/// Where a part of a line stands in it.
fn place(line: &str, part: &str) -> Range<usize> {
    let from = part.as_ptr() as usize - line.as_ptr() as usize;
    from..from + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Event {
        n: i64,
        #[serde(default)]
        text: String,
    }

    struct Events;

    impl Notifications for Events {
        type Item = Event;

        fn read<'de, D: Deserializer<'de>>(method: &str, params: D) -> Result<Option<Event>, D::Error> {
            match method {
                "event" => Event::deserialize(params).map(Some),
                "untouched" => Ok(None),
                _ => IgnoredAny::deserialize(params).map(|_| None),
            }
        }
    }

    fn read(line: &str) -> Message<Event> {
        read_text::<Events>(line)
    }

    #[track_caller]
    fn is_event(line: &str, n: i64, text: &str) {
        match read(line) {
            Message::Notification(event) => assert_eq!(event, Event { n, text: text.to_owned() }),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_notification_is_read_in_any_order_of_its_keys() {
        is_event(r#"{"jsonrpc":"2.0","method":"event","params":{"n":1}}"#, 1, "");
        is_event(r#"{"params":{"n":2,"text":"a\u20acb"},"jsonrpc":"2.0","method":"event"}"#, 2, "a€b");
        is_event("\t{\"method\" : \"ev\\u0065nt\" , \"params\" : {\"n\" : 3, \"more\": [{}]} } \r", 3, "");
        is_event(r#"{"method":"event","params":{"n":4},"id":null,"extra":{"method":"x"}}"#, 4, "");
    }

    #[test]
    fn a_line_separator_inside_a_string_stays() {
        is_event(
            "{\"method\":\"event\",\"params\":{\"n\":1,\"text\":\"a\u{2028}b\u{2029}c\"}}",
            1,
            "a\u{2028}b\u{2029}c",
        );
    }

    #[test]
    fn a_method_of_no_interest_is_told_apart() {
        assert!(matches!(read(r#"{"method":"other","params":{"n":"x"}}"#), Message::Uninteresting));
        assert!(matches!(read(r#"{"method":"other"}"#), Message::Uninteresting));
        assert!(matches!(read(r#"{"method":"untouched","params":{"n":[1,2]}}"#), Message::Uninteresting));
        assert!(matches!(read(r#"{"params":{"n":[1,2]},"method":"untouched"}"#), Message::Uninteresting));
    }

    #[test]
    fn parameters_that_do_not_fit_are_malformed_not_noise() {
        for line in [
            r#"{"method":"event","params":{"n":"x"}}"#,
            r#"{"params":{"n":"x"},"method":"event"}"#,
            r#"{"method":"event","params":{}}"#,
        ] {
            match read(line) {
                Message::Malformed { method, params: Some(_) } => assert_eq!(method, "event"),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(read(r#"{"method":"event"}"#), Message::Malformed { params: None, .. }));
    }

    #[test]
    fn answers_carry_their_result_as_it_was_written() {
        let line = r#"{"jsonrpc":"2.0","id":7,"result" : {"b":1.0, "a":[]} }"#;
        match read(line) {
            Message::Answer { id: Some(7), answer: Answer::Result(at) } => {
                assert_eq!(&line[at], r#"{"b":1.0, "a":[]}"#);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            read(r#"{"result":null,"id":7.0,"error":null}"#),
            Message::Answer { id: Some(7), answer: Answer::Result(_) }
        ));
    }

    #[test]
    fn errors_are_read_leniently() {
        let error = |line: &str| match read(line) {
            Message::Answer { answer: Answer::Error(error), .. } => (error.code, error.message, error.data),
            other => panic!("{other:?}"),
        };
        let plain = error(r#"{"id":1,"error":{"code":-32000,"message":"no","data":{"k":1}}}"#);
        assert_eq!(plain, (-32000, "no".to_owned(), Some(serde_json::json!({"k": 1}))));
        assert_eq!(error(r#"{"id":1,"error":{"code":-32000.0}}"#), (-32000, String::new(), None));
        assert_eq!(error(r#"{"id":1,"result":1,"error":{"code":5,"message":null}}"#), (5, String::new(), None));
    }

    #[test]
    fn an_answer_with_neither_is_unreadable() {
        for line in [r#"{"id":1}"#, r#"{"id":1,"error":"no"}"#, r#"{"id":1,"error":{"code":"x"}}"#] {
            assert!(matches!(read(line), Message::Answer { id: Some(1), answer: Answer::Unreadable }), "{line}");
        }
    }

    #[test]
    fn ids_that_are_not_ours_are_kept_apart() {
        for line in
            [r#"{"id":"1","result":1}"#, r#"{"id":null,"result":1}"#, r#"{"id":-1,"result":1}"#, r#"{"result":1}"#]
        {
            assert!(matches!(read(line), Message::Answer { id: None, .. }), "{line}");
        }
    }

    #[test]
    fn requests_of_the_host_are_told_with_their_id() {
        for (line, wanted) in [
            (r#"{"id":3,"method":"event","params":{"n":1}}"#, "3"),
            (r#"{"method":"event","params":{"n":1},"id":"a-1"}"#, "\"a-1\""),
            (r#"{"method":"event","params":{"n":"x"},"id":-2.5}"#, "-2.5"),
            (r#"{"method":"whatever","id":3}"#, "3"),
        ] {
            match read(line) {
                Message::Request { id } => assert_eq!(id.get(), wanted),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn everything_else_is_noise() {
        for line in [
            "",
            "\r",
            "  ",
            "starting up",
            "{",
            r#"{"id":1,"result":"#,
            r#"{"method":"event","params":{"n":1}"#,
            "[]",
            "1",
            r#"[{"method":"event","params":{"n":1}}]"#,
            "{}",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"method":5}"#,
            r#"{"method":"event","params":{"n":1}} trailing"#,
            r#"{"id":null}"#,
        ] {
            assert!(matches!(read(line), Message::Noise), "{line}");
        }
        assert!(matches!(
            read_message::<Events>(b"{\"method\":\"event\",\"params\":{\"n\":1,\"text\":\"\xff\"}}"),
            Message::Noise
        ));
        assert!(matches!(read_message::<Events>(b"{\"id\":1,\"result\":\"\xc3\"}"), Message::Noise));
    }

    #[test]
    fn debug_shows_no_text_of_the_host() {
        let error = ErrorObject { code: 1, message: "hush".into(), data: Some("hush".into()) };
        assert!(!format!("{error:?}").contains("hush"));
    }
}
