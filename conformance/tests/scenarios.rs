//! The scenarios, a test each: `scenarios/NAME.json` against `scenarios/expected/NAME.json`.

use std::path::Path;

use kitport_conformance::scenario::{Scenario, names, run};

const HOST: &str = env!("CARGO_BIN_EXE_conformance-host");

/// A test for each, and their names.
macro_rules! scenarios {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[tokio::test]
            async fn $name() {
                check(stringify!($name)).await;
            }
        )*
    };
}

scenarios! {
    approval_approve
    approval_deny
    approval_session
    busy
    child_cancel
    child_question
    config
    context
    context_late
    crash
    cursor
    errors
    failed_run
    future
    inbox
    interrupted
    list
    mismatch
    models
    needs_setup
    nested_tool
    no_features
    no_text
    output
    pages
    plan
    question
    queue
    quota
    rename
    reply
    retention
    retry
    rewind
    tool
    unicode
    usage
}

async fn check(name: &str) {
    let scenario = Scenario::load(name);
    scenario.check(&run(&scenario, Path::new(HOST), &[]).await);
}

#[test]
fn every_file_is_run() {
    assert_eq!(NAMES, names());
}

/// Faults that must not show: with each of them every scenario gives what it gives without.
macro_rules! faults {
    ($($name:ident = $fault:literal)*) => {
        mod with {
            $(
                #[tokio::test]
                async fn $name() {
                    super::with_fault($fault).await;
                }
            )*
        }
    };
}

faults! {
    noise = "noise"
    split = "split"
    joined = "joined"
    duplicates = "duplicates"
    transient_duplicates = "transient-duplicates"
    reorder = "reorder"
    events_first = "events-first"
    drop = "drop"
    request = "request"
}

async fn with_fault(fault: &str) {
    let mut wrong = Vec::new();
    for name in NAMES {
        let scenario = Scenario::load(name);
        let got = run(&scenario, Path::new(HOST), &["--fault", fault]).await;
        if let Some(diff) = scenario.differs(&got) {
            wrong.push(format!("{name}, {fault}:\n{diff}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
