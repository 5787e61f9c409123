//! The tables in the README and in `docs/` against the code: what they say is what it does.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used)] // What is not there is a failure of its test.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kitport::bubblepaw::sequence::TABLE;
use kitport::bubblepaw::wire::{EventData, feature};
use kitport::door::schema;
use kitport::model::Capability;
use serde_json::Value;

fn page(page: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page)).unwrap().replace("\r\n", "\n")
}

/// The rows of the table whose head is `head`, a list of cells each.
fn table(name: &str, head: &str) -> Vec<Vec<String>> {
    let text = page(name);
    let mut lines = text.lines().skip_while(|line| *line != head);
    assert!(lines.next().is_some() && lines.next().is_some_and(|line| line.starts_with("| ---")), "{name}: {head}");
    let rows: Vec<Vec<String>> = lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    assert!(!rows.is_empty(), "{name}: {head}");
    rows
}

/// What stands in backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a Vec<Value> {
    schema[name].as_array().unwrap()
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap()
}

/// The fields of a type, with `?` where they may be absent.
fn fields(def: &Value) -> Vec<String> {
    let required = |name: &String| def["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let names = def["properties"].as_object().unwrap().keys();
    names.map(|name| if required(name) { name.clone() } else { format!("{name}?") }).collect()
}

#[test]
fn the_table_of_events() {
    let schema = schema();
    let rows = table("docs/events.md", "| kind | fields | durable | what happened |");
    assert_eq!(rows.len(), list(&schema, "events").len());
    for (row, event) in rows.iter().zip(list(&schema, "events")) {
        let kind = text(event, "kind");
        assert_eq!(code(&row[0]), [kind]);
        assert_eq!(code(&row[1]), fields(&schema["$defs"][text(event, "type")]), "{kind}");
        assert_eq!(row[2], if event["durable"] == "both" { "yes" } else { "no" }, "{kind}");
        assert_eq!(row[3], text(event, "doc"), "{kind}");
    }
}

#[test]
fn the_fields_of_every_event() {
    let schema = schema();
    let rows = table("docs/events.md", "| field | what it is |");
    let mut told: Vec<_> = rows.iter().map(|row| code(&row[0])[0].to_owned()).collect();
    assert_eq!(told.remove(0), "kind");
    assert_eq!(told, fields(&schema["$defs"]["Event"]));
}

#[test]
fn the_reasons_of_a_gap() {
    let rows = table("docs/events.md", "| reason | `lost` | what it means |");
    let told: Vec<_> = rows.iter().map(|row| code(&row[0])[0].to_owned()).collect();
    assert_eq!(Value::from(told), schema()["$defs"]["GapReason"]["x-open-enum"]);
}

#[test]
fn the_tables_of_errors() {
    let schema = schema();
    for (page, head) in [
        ("README.md", "| code | type | it carries | when |"),
        ("docs/errors.md", "| code | type | own fields | what to do |"),
    ] {
        let rows = table(page, head);
        assert_eq!(rows.len(), list(&schema, "errors").len(), "{page}");
        for (row, error) in rows.iter().zip(list(&schema, "errors")) {
            let code_of_it = text(error, "code");
            assert_eq!(code(&row[0]), [code_of_it], "{page}");
            let types: Vec<_> = [Some(text(error, "type")), error["base"].as_str()].into_iter().flatten().collect();
            assert_eq!(code(&row[1]), types, "{page}");
            let own: Vec<_> = list(error, "fields").iter().map(|field| text(field, "name")).collect();
            let told: Vec<_> = code(&row[2]).iter().map(|field| field.trim_end_matches('?')).collect();
            assert_eq!(told, own, "{page}: {code_of_it}");
        }
    }
}

#[test]
fn the_fields_and_outcomes_of_every_error() {
    let schema = schema();
    let told = table("docs/errors.md", "| field | what it is |");
    let told: Vec<_> = told.iter().map(|row| code(&row[0])[0].trim_end_matches('?')).collect();
    let fields: Vec<_> = list(&schema, "errorFields").iter().map(|field| text(field, "name")).collect();
    assert_eq!(told, fields);
    let rows = table("docs/errors.md", "| outcome | meaning | may it be sent again? |");
    let mut told: Vec<_> = rows.iter().map(|row| code(&row[0])[0]).collect();
    let outcomes = schema["$defs"]["Outcome"]["oneOf"].as_array().unwrap();
    let mut outcomes: Vec<_> = outcomes.iter().map(|outcome| text(outcome, "const")).collect();
    told.sort_unstable();
    outcomes.sort_unstable();
    assert_eq!(told, outcomes);
}

#[test]
fn the_table_of_capabilities() {
    let schema = schema();
    let rows = table("README.md", "| capability | what needs it |");
    assert_eq!(rows.len(), list(&schema, "capabilities").len());
    for (row, capability) in rows.iter().zip(list(&schema, "capabilities")) {
        let name = text(capability, "name");
        assert_eq!(code(&row[0]), [name]);
        let mut told = code(&row[1]);
        let mut methods: Vec<_> = list(capability, "methods").iter().map(|method| method.as_str().unwrap()).collect();
        told.sort_unstable();
        methods.sort_unstable();
        assert_eq!(told, methods, "{name}");
        assert!(!row[1].is_empty(), "{name}");
    }
}

#[test]
fn the_table_of_negotiated_features() {
    let rows = table("docs/mapping.md", "| on when negotiated | capability |");
    let mut capabilities: Vec<_> = rows.iter().flat_map(|row| code(&row[1])).collect();
    let mut all: Vec<_> = Capability::ALL.iter().map(|capability| capability.name()).collect();
    capabilities.sort_unstable();
    all.sort_unstable();
    assert_eq!(capabilities, all, "each stands once");
    let mut features: Vec<_> = rows.iter().flat_map(|row| code(&row[0])).collect();
    features.sort_unstable();
    features.dedup();
    // Pages of lists are no capability: without the feature all chats come at once.
    let mut negotiable: Vec<_> = feature::ALL.iter().copied().filter(|name| *name != feature::PAGINATION).collect();
    negotiable.sort_unstable();
    assert_eq!(features, negotiable);
}

#[test]
fn the_table_of_positions() {
    let rows = table("docs/mapping.md", "| host event | position | kit event |");
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let null = if row[0].ends_with(", null") { " null" } else { "" };
            (code(&row[0]).join(" ") + null, row[1].parse().unwrap(), code(&row[2])[0].to_owned())
        })
        .collect();
    let table: Vec<(String, u64, String)> =
        TABLE.iter().map(|row| (row.host.to_owned(), row.position, row.kit.to_owned())).collect();
    assert_eq!(told, table);
}

#[test]
fn every_kind_that_may_be_durable_has_a_position_and_no_other_has() {
    let schema = schema();
    let durable = list(&schema, "events").iter().filter(|event| event["durable"] == "both");
    let durable: BTreeSet<_> = durable.map(|event| text(event, "kind")).collect();
    assert_eq!(TABLE.iter().map(|row| row.kit).collect::<BTreeSet<_>>(), durable);
}

#[test]
fn no_type_of_host_event_is_left_out() {
    let positions = table("docs/mapping.md", "| host event | position | kit event |");
    let others = table("docs/mapping.md", "| host event | what it does |");
    for event in EventData::TYPES {
        assert!(positions.iter().chain(&others).any(|row| code(&row[0]).contains(event)), "{event} is left out");
    }
}

#[test]
fn the_first_program_is_the_example_that_compiles() {
    let readme = page("README.md");
    let (_, program) = readme.split_once("```rust\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let example = page("core/examples/first.rs");
    assert_eq!(program, example.split_once("\n\n").unwrap().1);
}
