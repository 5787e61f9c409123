//! The table against the ports' own source: the same methods, words and parameters, so that a method that is forgotten
//! fails here by its name.

use std::collections::BTreeMap;

use syn::{Attribute, Expr, FnArg, Item, Lit, Meta, Pat, TraitItem};

use super::super::table::{METHODS, Port, Row, STREAMS};

/// A method of a port, as its source says.
#[derive(Debug, PartialEq)]
struct Told {
    port: Port,
    doc: Vec<String>,
    /// Whether it must be awaited.
    waits: bool,
    /// Its parameters in their order.
    params: Vec<String>,
}

/// What every method goes through and none goes to.
const NOT_IN_THE_TABLE: &str = "call_extension";

fn doc(attributes: &[Attribute]) -> Vec<String> {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(line) => Some(line.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect()
}

fn told() -> BTreeMap<String, Told> {
    let source = syn::parse_file(include_str!("../../port.rs")).unwrap();
    let mut told = BTreeMap::new();
    for item in source.items {
        let Item::Trait(item) = item else { continue };
        let port = match item.ident.to_string().as_str() {
            "ChatReader" => Port::ChatReader,
            "AgentBackend" => Port::AgentBackend,
            other => panic!("the door knows no port {other}"),
        };
        for method in item.items {
            let TraitItem::Fn(method) = method else { continue };
            let param = |input: &FnArg| match input {
                FnArg::Receiver(_) => None,
                FnArg::Typed(param) => match &*param.pat {
                    Pat::Ident(name) => Some(name.ident.to_string().trim_start_matches('_').to_owned()),
                    _ => panic!("a parameter without a name"),
                },
            };
            let params = method.sig.inputs.iter().filter_map(param).collect();
            let (doc, waits) = (doc(&method.attrs), method.sig.asyncness.is_some());
            told.insert(method.sig.ident.to_string(), Told { port, doc, waits, params });
        }
    }
    told
}

#[test]
fn every_method_of_the_ports_is_in_the_table_and_nothing_else() {
    let told: Vec<_> = told().into_keys().filter(|name| name != NOT_IN_THE_TABLE).collect();
    let mut rows: Vec<_> = METHODS.iter().map(|row| row.name).chain(STREAMS.iter().map(|row| row.name)).collect();
    rows.sort_unstable();
    assert_eq!(rows, told);
}

#[test]
fn a_row_says_what_the_port_says() {
    fn check<T>(row: &Row<T>, told: &BTreeMap<String, Told>) {
        let told = &told[row.name];
        assert_eq!(row.port, told.port, "{}", row.name);
        assert_eq!(row.doc, told.doc, "{}", row.name);
    }
    let told = told();
    METHODS.iter().for_each(|row| check(row, &told));
    STREAMS.iter().for_each(|row| check(row, &told));
}

#[test]
fn a_stream_opens_at_once_exactly_where_its_method_is_no_async_one() {
    let told = told();
    for row in STREAMS {
        assert_eq!(row.port == Port::AgentBackend, told[row.name].waits, "{}", row.name);
    }
}

#[cfg(feature = "schema")]
#[test]
fn the_parameters_stand_in_the_order_of_the_port() {
    let schema = super::super::schema();
    let told = told();
    for entry in schema["methods"].as_array().unwrap().iter().chain(schema["streams"].as_array().unwrap()) {
        let name = entry["name"].as_str().unwrap();
        let params: Vec<_> = entry["params"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
        let camel: Vec<_> = told[name].params.iter().map(|param| camel_case(param)).collect();
        assert_eq!(params, camel, "{name}");
    }
}

#[cfg(feature = "schema")]
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}
