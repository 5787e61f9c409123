//! Whatever is given wrong, a person gets a sentence, its code and what to do, and a program gets JSON.

#![allow(clippy::unwrap_used)] // What is not there is a failure of its test.

mod common;

use common::Home;

#[test]
fn a_missing_program_or_folder_is_named() {
    let home = Home::new();
    for (args, name) in [
        (&["--host", "no-such-host stdio", "chats"][..], "no-such-host"),
        (&["--host", "/no/such/host", "chats"], "/no/such/host"),
        (
            &["--host", &format!("{} host stdio", common::PROGRAM), "--cwd", "/no/such/folder", "chats"],
            "/no/such/folder",
        ),
    ] {
        let told = home.run(args).ends(3);
        assert!(told.err.contains(name) && told.err.contains("--host and --cwd"), "{}", told.err);
        assert!(told.out.is_empty());
    }
    assert!(home.run(&["--cwd", "/no/such/folder", "chats"]).ends(2).err.contains("/no/such/folder"));
}

#[test]
fn an_error_is_json_where_json_is_asked_for() {
    let home = Home::new();
    let error = home.run(&["--json", "show", "ses_none"]).ends(1).error();
    assert_eq!(error["code"], "not_found");
    assert!(error["hint"].as_str().unwrap().contains("kitport chats"));
    assert_eq!(home.run(&["--json", "tail", "x", "--after", "-1"]).ends(2).error()["code"], "usage");
    let waits = home.run(&["--json", "send", "--new", "A", "approve"]).ends(4);
    assert_eq!(waits.error()["code"], "waiting");
}

#[test]
fn an_unknown_chat_is_no_chat_of_any_command() {
    let home = Home::new();
    for args in [
        &["show", "nobody"][..],
        &["show", "nobody", "--history"],
        &["show", "nobody", "--context"],
        &["tail", "nobody"],
        &["tail", "nobody", "--feed"],
        &["send", "nobody", "hi"],
        &["send", "nobody", "--resume"],
        &["approve", "nobody", "a1"],
        &["answer", "nobody", "x"],
        &["show", "last"],
    ] {
        let told = home.run(args).ends(1);
        assert!(told.err.contains("not_found") && told.err.contains("hint:"), "{args:?}: {}", told.err);
    }
}

#[test]
fn blank_and_missing_texts_change_nothing() {
    let home = Home::new();
    for args in [
        &["send", "--new", "B", " "][..],
        &["send", "last", ""],
        &["send", "last"],
        &["send"],
        &["send", "last", "text", "--resume"],
        &["show", ""],
        &["tail", "last", "--after", "many"],
        &["tail", "last", "--until", "the.end"],
        &["tail", "last", "--feed", "--after", "3"],
        &["approve", "last"],
        &["approve", "--deny"],
        &["approve", "a", "b", "--deny", "--session"],
        &["--host", " ", "chats"],
        &["--host", "'open", "chats"],
        &["--host", "x", "--db", "y", "chats"],
        &["demo", "--db", "x"],
        &["record", "/no/such/folder/file", "chats"],
        &["record", "x.jsonl", "dance"],
        &["dance"],
        &[],
    ] {
        home.run(args).ends(2);
    }
    assert_eq!(home.run(&["chats", "--json"]).ends(0).one()["chats"], serde_json::json!([]));
}

#[test]
fn what_is_missing_is_named() {
    let home = Home::new();
    let told = home.run(&["send", "hello"]).ends(2);
    assert!(told.err.contains("missing") && told.err.contains("--new TITLE TEXT"), "{}", told.err);
    let told = home.run(&["--json", "approve", "last"]).ends(2);
    assert!(told.err.contains("<APPROVAL>"), "{}", told.err);
    let told = home.run(&["--json", "record", "x.jsonl", "tail"]).ends(2);
    assert!(told.err.contains("<CHAT>"), "{}", told.err);
}

#[test]
fn a_command_for_the_host_is_refused_before_it_is_sent() {
    let home = Home::new();
    let told = home.run(&["send", "--new", "S", "/model fast"]).ends(2);
    assert!(told.err.contains("invalid"), "{}", told.err);
}

#[test]
fn an_approval_and_an_answer_must_be_there() {
    let home = Home::new();
    home.run(&["send", "--new", "A", "say x"]).ends(0);
    let told = home.run(&["approve", "last", "approval_9"]).ends(1);
    assert!(told.err.contains("not_found") && told.err.contains("kitport approve"), "{}", told.err);
    assert!(home.run(&["answer", "last", "x"]).ends(1).err.contains("no open question"));
    assert!(home.run(&["send", "last", "--resume"]).ends(1).err.contains("conflict"));
}

#[test]
fn a_file_that_is_none_of_ours_is_told() {
    let home = Home::new();
    let file = home.path("letter.txt");
    std::fs::write(&file, "Dear fox, this is no database. ".repeat(100)).unwrap();
    let told = home.run(&["--db", file.to_str().unwrap(), "chats"]).ends(1);
    assert!(told.err.contains("letter.txt") && told.err.contains("--db"), "{}", told.err);
    let folder = home.path("");
    home.run(&["--db", folder.to_str().unwrap(), "chats"]).ends(1);
}

#[test]
fn what_a_host_can_not_do_is_said_with_a_way_on() {
    let home = Home::new();
    let host = home.host(&["--feature", "none"]);
    for args in [&["approve"][..], &["models"]] {
        let told = home.run(&[&[host.as_str()][..], args].concat()).ends(1);
        assert!(told.err.contains("unsupported") && told.err.contains("kitport doctor"), "{}", told.err);
    }
    home.run(&[&host, "send", "--new", "N", "say x"]).ends(0);
    home.run(&[&host, "show", "last", "--history"]).ends(1);
    let other = home.host(&["--protocol-version", "9.9"]);
    assert!(home.run(&[&other, "chats"]).ends(3).err.contains("9.9"));
    let unset = home.host(&["--no-provider"]);
    assert!(home.run(&[&unset, "send", "--new", "N", "say x"]).ends(1).err.contains("needs_setup"));
}
