//! The schema is whole: nothing of the model, the errors or the events is missing, and every reference leads somewhere.

use std::collections::BTreeSet;

use serde_json::Value;

use super::errors::KINDS;
use super::{DURABLE_KINDS, schema};
use crate::error::KitError;
use crate::model::{Capability, EventKind};

fn names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap()).collect()
}

/// Every string that stands under `key`, at any depth.
fn all_under<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                match value {
                    Value::String(text) if name == key => found.push(text),
                    other => all_under(other, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all_under(item, key, found)),
        _ => {}
    }
}

#[test]
fn all_events_errors_and_capabilities_are_in_it_in_their_order() {
    let schema = schema();
    assert_eq!(names(&schema["events"], "kind"), EventKind::KINDS);
    assert_eq!(names(&schema["errors"], "code"), KitError::CODES);
    let capabilities: Vec<_> = Capability::ALL.iter().map(|capability| capability.name()).collect();
    assert_eq!(names(&schema["capabilities"], "name"), capabilities);
}

#[test]
fn the_kinds_that_may_be_durable_exist() {
    for kind in DURABLE_KINDS {
        assert!(EventKind::KINDS.contains(kind), "{kind}");
    }
    let schema = schema();
    let both = schema["events"].as_array().unwrap().iter().filter(|event| event["durable"] == "both");
    assert_eq!(both.count(), DURABLE_KINDS.len());
}

#[test]
fn every_reference_leads_to_a_type() {
    let schema = schema();
    let mut references = Vec::new();
    all_under(&schema, "$ref", &mut references);
    assert!(references.len() > 100);
    for reference in references {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        assert!(schema["$defs"].get(name).is_some(), "{name}");
    }
    for event in names(&schema["events"], "type") {
        assert!(schema["$defs"].get(event).is_some(), "{event}");
    }
}

#[test]
fn everything_has_words_and_none_are_rusts() {
    let schema = schema();
    for list in ["options", "methods", "streams", "events", "errors", "errorFields", "capabilities"] {
        assert!(names(&schema[list], "doc").iter().all(|doc| !doc.is_empty()), "{list}");
    }
    for list in ["methods", "streams"] {
        for entry in schema[list].as_array().unwrap() {
            assert!(names(&entry["params"], "doc").iter().all(|doc| !doc.is_empty()), "{entry}");
        }
    }
    let mut words = Vec::new();
    all_under(&schema, "doc", &mut words);
    all_under(&schema, "description", &mut words);
    for words in words {
        assert!(!words.contains("::") && !words.contains("[`"), "{words}");
    }
}

#[test]
fn every_type_of_the_model_and_every_field_has_words() {
    for (name, def) in schema()["$defs"].as_object().unwrap() {
        assert!(def["description"].is_string(), "{name}");
        for (field, schema) in def["properties"].as_object().into_iter().flatten() {
            assert!(schema["description"].is_string(), "{name}.{field}");
        }
    }
}

/// Every public struct and enum that `model` exports as data is in the schema.
#[test]
fn no_type_of_the_model_is_missing() {
    let exported = syn::parse_file(include_str!("../../model/mod.rs")).unwrap();
    let mut types = BTreeSet::new();
    for item in exported.items {
        if let syn::Item::Use(item) = item {
            leaves(&item.tree, &mut types);
        }
    }
    let schema = schema();
    let missing: Vec<_> = types.iter().filter(|name| schema["$defs"].get(name.as_str()).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn leaves(tree: &syn::UseTree, found: &mut BTreeSet<String>) {
    match tree {
        syn::UseTree::Path(path) => leaves(&path.tree, found),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, found)),
        syn::UseTree::Name(name) => {
            found.insert(name.ident.to_string());
        }
        _ => {}
    }
}

#[test]
fn the_words_and_fields_of_an_error_are_those_of_its_variant() {
    let source = syn::parse_file(include_str!("../../error.rs")).unwrap();
    let item = source.items.into_iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == "KitError" => Some(item),
        _ => None,
    });
    let variants: Vec<_> = item.unwrap().variants.into_iter().collect();
    assert_eq!(variants.len(), KINDS.len());
    for (variant, kind) in variants.iter().zip(KINDS) {
        let doc = variant.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(doc), .. }) => Some(doc.value()),
                _ => None,
            },
            _ => None,
        });
        let doc = doc.unwrap();
        // What follows is a word on a method of Rust's.
        let doc = doc.split(", see [").next().unwrap().trim_end_matches('.');
        assert_eq!(kind.doc.trim_end_matches('.'), doc, "{}", kind.code);
        let fields: Vec<_> = variant.fields.iter().filter_map(|field| field.ident.as_ref()).collect();
        let own: Vec<_> = fields.iter().filter(|field| **field != "info").map(|field| field.to_string()).collect();
        let snake = |field: &&str| {
            let mut name = String::new();
            for letter in field.chars() {
                if letter.is_uppercase() {
                    name.push('_');
                }
                name.extend(letter.to_lowercase());
            }
            name
        };
        assert_eq!(kind.fields.iter().map(snake).collect::<Vec<_>>(), own, "{}", kind.code);
    }
}
