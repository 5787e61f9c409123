//! The schema of a moment: a string in RFC 3339.

/// Stands for [`Time`](super::Time) in schemas.
pub(crate) struct TimeSchema;

impl schemars::JsonSchema for TimeSchema {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}
