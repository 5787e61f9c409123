//! The walk over the rows: `rows.json` names each row of the tables with its tests. A row without a test fails here, and
//! so do a name without a test and a test without a row.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

const SOURCES: &[(&str, &str)] = &[
    ("capabilities", include_str!("capabilities.rs")),
    ("commands", include_str!("commands.rs")),
    ("errors", include_str!("errors.rs")),
    ("events", include_str!("events.rs")),
    ("reads", include_str!("reads.rs")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    table: String,
    row: String,
    tests: Vec<String>,
}

fn rows() -> Vec<Row> {
    serde_json::from_str(include_str!("../../rows.json")).expect("the rows are JSON")
}

/// The tests that the sources have, with their modules.
fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for (module, source) in SOURCES {
        for item in syn::parse_file(source).expect("it compiled").items {
            let syn::Item::Fn(function) = item else { continue };
            let is = |name: &str| {
                function.attrs.iter().any(|attr| attr.path().segments.last().is_some_and(|last| last.ident == name))
            };
            if is("test") {
                assert!(!is("ignore"), "{module}::{} is skipped", function.sig.ident);
                tests.insert(format!("{module}::{}", function.sig.ident));
            }
        }
    }
    tests
}

#[test]
fn every_row_has_its_tests() {
    let tests = tests();
    let mut seen = BTreeSet::new();
    for Row { table, row, tests: named } in rows() {
        assert!(!named.is_empty(), "{table}: {row} has no test");
        for test in named {
            assert!(tests.contains(&test), "{table}: {row}: there is no test {test}");
        }
        assert!(seen.insert((table.clone(), row.clone())), "{table}: {row} stands twice");
    }
}

#[test]
fn every_test_has_a_row() {
    let named: BTreeSet<_> = rows().into_iter().flat_map(|row| row.tests).collect();
    let without: Vec<_> = tests().into_iter().filter(|test| !named.contains(test)).collect();
    assert!(without.is_empty(), "{without:?}");
}

/// As many rows as the tables have: a row that is lost from the list shows here.
#[test]
fn the_tables_are_whole() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows() {
        *counts.entry(row.table).or_default() += 1;
    }
    let mapping: Vec<_> = counts.iter().filter(|(table, _)| table.starts_with("mapping:")).collect();
    let sizes: Vec<_> = mapping.iter().map(|(table, count)| (table.as_str(), **count)).collect();
    assert_eq!(
        sizes,
        [
            ("mapping: capabilities", 8),
            ("mapping: commands", 17),
            ("mapping: errors and recovery", 8),
            ("mapping: events", 26),
            ("mapping: reads and sequence numbers", 7),
        ]
    );
    // What the code itself lists has a row each.
    assert_eq!(counts["wire: features"], kitport::bubblepaw::wire::feature::ALL.len() + 3);
    let methods: BTreeSet<_> = kitport::bubblepaw::errors::WORDS.iter().map(|row| row.method).collect();
    assert_eq!(counts["wire: words of -32000"], methods.len());
}
