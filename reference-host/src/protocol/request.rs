//! What a line holds, and the lines of answers.

use std::borrow::Cow;
use std::io::Write as _;

use kitport::bubblepaw::wire::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::{Failure, INVALID_REQUEST, Outcome, PARSE_ERROR};

/// What stands in a line.
#[derive(Debug)]
pub(crate) enum Incoming<'l> {
    Request(Request<'l>),
    /// Clients have nothing to notify in this contract; what they notify is ignored.
    Notification,
    /// An answer to a request of the host.
    Answer,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request<'l> {
    /// As the client wrote it.
    pub(crate) id: &'l str,
    pub(crate) method: &'l str,
    params: &'l str,
}

#[derive(Deserialize)]
struct Form<'l> {
    #[serde(borrow, default)]
    id: Option<&'l RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'l, str>>,
    #[serde(borrow, default)]
    params: Option<&'l RawValue>,
    #[serde(borrow, default)]
    result: Option<&'l RawValue>,
    #[serde(borrow, default)]
    error: Option<&'l RawValue>,
}

/// Reads a line and hands it on.
pub(crate) fn read<R>(line: &[u8], then: impl FnOnce(Result<Incoming<'_>, Failure>) -> R) -> R {
    let form: Form<'_> = match serde_json::from_slice(line) {
        Ok(form) => form,
        Err(error) if error.is_data() => {
            return then(Err(Failure::new(INVALID_REQUEST, "invalid request: not an object of JSON-RPC")));
        }
        Err(_) => return then(Err(Failure::new(PARSE_ERROR, "parse error: not JSON"))),
    };
    let Form { id, method, params, result, error } = &form;
    then(match (id, method) {
        (Some(id), Some(method)) => {
            Ok(Incoming::Request(Request { id: id.get(), method, params: params.map_or("{}", RawValue::get) }))
        }
        (None, Some(_)) => Ok(Incoming::Notification),
        (Some(_), None) if result.is_some() || error.is_some() => Ok(Incoming::Answer),
        _ => Err(Failure::new(INVALID_REQUEST, "invalid request: no method")),
    })
}

impl Request<'_> {
    /// Reads the parameters of a method.
    pub(crate) fn params<M: Method>(&self) -> Outcome<M::Params> {
        // A list would fill the fields by their order, which no method of the contract means.
        if !self.params.starts_with('{') {
            return Err(Failure::params("not an object"));
        }
        serde_json::from_str(self.params).map_err(Failure::params)
    }

    /// The parameters as the client wrote them.
    pub(crate) fn params_json(&self) -> &str {
        self.params
    }

    /// The answer with a result.
    pub(crate) fn answer(&self, result: &str) -> Vec<u8> {
        let mut line = Vec::with_capacity(result.len() + 64);
        writeln!(line, "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", self.id)
            .expect("a vector takes every byte");
        line
    }
}

/// The answer with an error; `id` as the client wrote it.
pub(crate) fn error_line(id: &str, failure: &Failure) -> Vec<u8> {
    #[derive(Serialize)]
    struct Error<'a> {
        code: i64,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Value>,
    }
    let error = Error { code: failure.code, message: &failure.message, data: failure.data.as_ref() };
    let error = serde_json::to_string(&error).expect("strings and values can be written as JSON");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        read(line.as_bytes(), |incoming| match incoming {
            Ok(Incoming::Request(request)) => format!("{} {} {}", request.id, request.method, request.params),
            Ok(Incoming::Notification) => "notification".into(),
            Ok(Incoming::Answer) => "answer".into(),
            Err(failure) => failure.code.to_string(),
        })
    }

    #[test]
    fn each_kind_of_line_is_told_apart() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":7,"method":"a\u002eb","params":{"x":1}}"#), r#"7 a.b {"x":1}"#);
        assert_eq!(kind(r#"{"id":"k","method":"m"}"#), r#""k" m {}"#);
        assert_eq!(kind(r#"{"id":1,"method":"m","params":null}"#), "1 m {}");
        assert_eq!(kind(r#"{"method":"m"}"#), "notification");
        assert_eq!(kind(r#"{"id":"h","error":{"code":-32601}}"#), "answer");
        assert_eq!(kind(r#"{"id":1}"#), "-32600");
        assert_eq!(kind(r#"[]"#), "-32600");
        assert_eq!(kind(r#"{"id":1,"method":"m""#), "-32700");
        assert_eq!(kind(""), "-32700");
    }
}
