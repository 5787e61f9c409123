//! The scenarios, a test each: `scenarios/NAME.json` against `scenarios/expected/NAME.json`.

use std::path::Path;

use kitport_conformance::scenario::{Scenario, names, run};

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
    scenario.check(&run(&scenario, Path::new(env!("CARGO_BIN_EXE_conformance-host")), &[]).await);
}

#[test]
fn every_file_is_run() {
    assert_eq!(NAMES, names());
}
