//! The demo proves what it shows, and fails where something is wrong.

#![allow(clippy::unwrap_used)] // What is not there is a failure of its test.

mod common;

use common::{Home, kinds};
use serde_json::Value;

fn check<'a>(lines: &'a [Value], part: &str) -> &'a Value {
    lines.iter().find(|line| line["check"].as_str().is_some_and(|name| name.contains(part))).unwrap()
}

#[test]
fn the_demo_passes_all_its_checks() {
    let home = Home::new();
    let lines = home.run(&["demo", "--json"]).ends(0).json();
    let checks: Vec<&Value> = lines.iter().filter(|line| line.get("check").is_some()).collect();
    assert_eq!(checks.len(), 7);
    assert!(checks.iter().all(|check| check["passed"] == true), "{checks:?}");
    assert_eq!(lines.last().unwrap()["passed"], true);
    let states: Vec<&str> = lines.iter().filter_map(|line| line["connection"]["status"].as_str()).collect();
    assert_eq!(states, ["connected", "restarting", "connected"]);
    assert!(kinds(&lines).contains(&"child.question_asked"));
}

#[test]
fn the_demo_is_for_a_person_too() {
    let home = Home::new();
    let shown = home.run(&["demo"]).ends(0).out;
    assert!(shown.contains("kill -9") && shown.contains("All 7 checks passed"), "{shown}");
    assert!(!shown.contains("FAIL") && !shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn a_host_that_forgets_fails_the_replay() {
    let home = Home::new();
    let lines = home.run(&["demo", "--json", "--host-arg=--retention", "--host-arg=5"]).ends(1).json();
    assert_eq!(check(&lines, "replay")["passed"], false);
    assert_eq!(check(&lines, "process")["passed"], true);
    assert_eq!(lines.last().unwrap()["failed"], 1);
}

#[test]
fn a_host_that_dies_unasked_fails_the_steps() {
    let home = Home::new();
    let lines = home.run(&["demo", "--json", "--host-arg=--fault", "--host-arg=exit=3@60"]).ends(1).json();
    assert_eq!(check(&lines, "every step")["passed"], false);
    assert_eq!(check(&lines, "every kind")["passed"], false);
    assert_eq!(check(&lines, "process")["passed"], true);
}

#[test]
fn a_host_that_is_unkind_but_right_passes() {
    let home = Home::new();
    let unkind = ["noise", "split", "duplicates", "reorder", "events-first", "request", "future"];
    let faults: Vec<String> =
        unkind.iter().flat_map(|fault| ["--host-arg=--fault".to_owned(), format!("--host-arg={fault}")]).collect();
    let args: Vec<&str> = ["demo", "--json"].into_iter().chain(faults.iter().map(String::as_str)).collect();
    home.run(&args).ends(0);
}

#[test]
fn a_host_that_can_not_start_is_told() {
    let home = Home::new();
    home.run(&["demo", "--host-arg=--nonsense"]).ends(3);
}
