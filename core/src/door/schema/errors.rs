//! The kinds of errors: their codes, the classes that the languages make of them, and their own fields.

use serde_json::{Value, json};

/// A kind of error.
pub(super) struct Kind {
    pub(super) code: &'static str,
    /// The name of its class. The base of all is `KitError`.
    pub(super) class: &'static str,
    /// The class above it, where that is another kind.
    pub(super) base: Option<&'static str>,
    pub(super) doc: &'static str,
    /// What it carries beside the fields of all.
    pub(super) fields: &'static [&'static str],
}

/// What all kinds carry.
const COMMON_FIELDS: &[&str] = &["code", "message", "outcome", "hostCode", "hostData"];

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $code:literal = $class:ident $(below $base:ident)? [$($field:literal),*];)*) => {
        &[$(Kind {
            code: $code,
            class: stringify!($class),
            base: kinds!(@base $($base)?),
            doc: concat!($($doc),*),
            fields: &[$($field),*],
        },)*]
    };
    (@base) => { None };
    (@base $base:ident) => { Some(stringify!($base)) };
}

/// All kinds, in the order of `KitError::CODES`, with the words of the enum's variants.
pub(super) const KINDS: &[Kind] = kinds! {
    /// The backend can't do this: its capability is off. Nothing was sent.
    "unsupported" = KitUnsupported ["capability"];
    /// There is no such thing.
    "not_found" = KitNotFound [];
    /// It contradicts what already is, for instance a decision already made.
    "conflict" = KitConflict [];
    /// A run goes on: a kind of conflict.
    "busy" = KitBusy below KitConflict [];
    /// The input can't be taken as it is.
    "invalid" = KitInvalid [];
    /// It is not allowed.
    "denied" = KitDenied [];
    /// The host must be set up first; the message says how.
    "needs_setup" = KitNeedsSetup [];
    /// It failed, for no reason that the kit could name.
    "failed" = KitFailed [];
    /// The host is gone.
    "host_exited" = KitHostExited ["exitCode", "signal", "stderrTail"];
    /// The host speaks another version of the protocol.
    "protocol_mismatch" = KitProtocolMismatch ["expected", "actual"];
    /// No answer came in time.
    "timeout" = KitTimeout ["method"];
    /// The backend, or the stream, was closed here.
    "closed" = KitClosed [];
    /// The app's own bridge failed; its exception is the source.
    "gateway" = KitGatewayError [];
};

/// The kinds, with their fields as `form`, the schema of the JSON form of all, describes them.
pub(super) fn table(form: &Value) -> Vec<Value> {
    KINDS
        .iter()
        .map(|kind| {
            let mut entry = json!({ "code": kind.code, "type": kind.class });
            if let Some(base) = kind.base {
                entry["base"] = base.into();
            }
            entry["doc"] = kind.doc.into();
            entry["fields"] = fields(kind.fields, form).into();
            entry
        })
        .collect()
}

/// The fields of all kinds.
pub(super) fn common(form: &Value) -> Vec<Value> {
    fields(COMMON_FIELDS, form)
}

fn fields(names: &[&str], form: &Value) -> Vec<Value> {
    let field = |name: &&str| {
        let mut schema = form["properties"][name].clone();
        let doc = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
        json!({ "name": name, "doc": doc, "schema": schema })
    };
    names.iter().map(field).collect()
}
