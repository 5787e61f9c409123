//! The schema of all that goes through the door: methods, streams, events, the model, errors and capabilities. The
//! languages' types are generated from it.
//!
//! ```text
//! schemaVersion  the version of the JSON form
//! options        [{name, doc, schema}]                        what every method takes beside its own parameters
//! methods        [{name, port, doc, capability?, params: [{name, doc, schema, optional}], result}]
//! streams        the same; `result` is what the stream gives, `port` AgentBackend means that opening it waits
//! events         [{kind, type, doc, durable: both | never}]   both: the same kind also restates, without a sequence
//! errorFields    [{name, doc, schema}]                        what every error carries
//! errors         [{code, type, base?, doc, fields: [{name, doc, schema}]}]
//! capabilities   [{name, doc, methods}]
//! $defs          the model, one JSON schema a type
//! ```
//! Parameters stand in their positional order. An open enum is a string with its known words in `x-open-enum`.

mod errors;
mod words;

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::params::TIMEOUT;
use super::table::{METHODS, Port, Row, STREAMS};
use crate::error::KitError;
use crate::model::{Capability, Event, SCHEMA_VERSION};
use words::plain;

/// The kinds that come with a sequence of their own. Each comes without one too: where a reload finds a change that no
/// durable event told, or for a nested tool call. All other kinds never have one.
const DURABLE_KINDS: &[&str] = &[
    "run.started",
    "run.waiting",
    "run.finished",
    "message.assistant",
    "message.system",
    "tool.started",
    "tool.finished",
    "plan.updated",
    "approval.requested",
    "approval.resolved",
    "question.asked",
    "question.resolved",
];

/// The schema, as one JSON document. The docs of this module's source say what stands in it.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let methods: Vec<Value> = METHODS.iter().map(|row| entry(row, &mut generator)).collect();
    let streams: Vec<Value> = STREAMS.iter().map(|row| entry(row, &mut generator)).collect();
    generator.subschema_for::<Event>();
    generator.subschema_for::<KitError>();
    let defs = generator.take_definitions(true);
    let mut schema = json!({
        "schemaVersion": SCHEMA_VERSION,
        "options": [{
            "name": TIMEOUT,
            "doc": "How long the whole call may take, in milliseconds; null: as long as it takes; absent: as the \
                    backend's options say.",
            "schema": { "type": ["number", "null"], "minimum": 0 },
        }],
        "methods": methods,
        "streams": streams,
        "events": events(&defs["Event"]),
        "errorFields": errors::common(&defs["KitError"]),
        "errors": errors::table(&defs["KitError"]),
        "capabilities": capabilities(&defs["Capability"]),
        "$defs": defs,
    });
    put_in_plain_words(&mut schema);
    schema
}

fn entry<T>(row: &Row<T>, generator: &mut SchemaGenerator) -> Value {
    let params = (row.params)(generator);
    let none = Map::new();
    let properties = params.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = params.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let params: Vec<Value> = properties
        .iter()
        .map(|(name, schema)| {
            let mut schema = schema.clone();
            let doc = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
            let optional = !required.iter().any(|required| required == name);
            json!({ "name": name, "doc": doc, "schema": schema, "optional": optional })
        })
        .collect();
    let mut entry = Map::new();
    entry.insert("name".into(), row.name.into());
    entry.insert("port".into(), port(row.port).into());
    entry.insert("doc".into(), row.doc.join("\n").into());
    if let Some(capability) = row.capability {
        entry.insert("capability".into(), capability.name().into());
    }
    entry.insert("params".into(), params.into());
    entry.insert("result".into(), (row.result)(generator).to_value());
    entry.into()
}

fn port(port: Port) -> &'static str {
    match port {
        Port::ChatReader => "ChatReader",
        Port::AgentBackend => "AgentBackend",
    }
}

fn events(event: &Value) -> Vec<Value> {
    variants(event)
        .map(|variant| {
            let kind = &variant["properties"]["kind"]["const"];
            let name = variant["$ref"].as_str().and_then(|path| path.rsplit('/').next());
            let durable = DURABLE_KINDS.iter().any(|durable| kind == durable);
            json!({
                "kind": kind,
                "type": name,
                "doc": variant["description"],
                "durable": if durable { "both" } else { "never" },
            })
        })
        .collect()
}

fn capabilities(capability: &Value) -> Vec<Value> {
    let rows = METHODS.iter().map(|row| (row.name, row.capability));
    let rows = rows.chain(STREAMS.iter().map(|row| (row.name, row.capability)));
    let rows: Vec<(&str, Option<Capability>)> = rows.collect();
    variants(capability)
        .map(|variant| {
            let name = &variant["const"];
            let needs = |needed: Option<Capability>| needed.is_some_and(|needed| name == needed.name());
            let methods: Vec<&str> = rows.iter().filter(|row| needs(row.1)).map(|row| row.0).collect();
            json!({ "name": name, "doc": variant["description"], "methods": methods })
        })
        .collect()
}

fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["oneOf"].as_array().into_iter().flatten()
}

fn put_in_plain_words(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(text) if key == "doc" || key == "description" => *text = plain(text),
                    other => put_in_plain_words(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(put_in_plain_words),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
