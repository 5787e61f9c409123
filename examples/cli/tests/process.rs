//! The program among others: hosts that die, readers that go, signals, and two of it at once.

#![allow(clippy::unwrap_used)] // What is not there is a failure of its test.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use common::{Home, ran};

fn start(home: &Home, args: &[&str]) -> Child {
    home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads lines until one has this in it.
fn read_until(lines: &mut impl BufRead, part: &str) {
    let mut line = String::new();
    while !line.contains(part) {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "{part} did not come");
    }
}

#[test]
fn a_host_that_dies_is_told_with_its_last_words() {
    let home = Home::new();
    let host = home.host(&[]);
    let told = home.run(&[&host, "send", "--new", "C", "say x; crash 7"]).ends(3);
    assert!(told.err.contains("exit code 7") && told.err.contains("host_exited"), "{}", told.err);
    let crashed = "--host=sh -c 'echo the keys are lost >&2; exit 9'";
    let told = home.run(&[crashed, "chats"]).ends(3);
    assert!(told.err.contains("exit code 9") && told.err.contains("the keys are lost"), "{}", told.err);
    let error = home.run(&[crashed, "--json", "chats"]).ends(3).error();
    assert_eq!((error["exitCode"].as_i64(), error["code"].as_str()), (Some(9), Some("host_exited")));
    // What was cut off goes on with the next host.
    let shown = home.run(&[&host, "show", "last", "--json"]).ends(0).one();
    assert_eq!(shown["runs"][0]["status"], "interrupted");
}

#[test]
fn a_reader_that_goes_ends_it_quietly() {
    let home = Home::new();
    home.run(&["send", "--new", "P", "tools 500"]).ends(0);
    for args in [&["tail", "last", "--after", "0"][..], &["tail", "last", "--after", "0", "--json"], &["show", "last"]]
    {
        let mut child = start(&home, args);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        drop(out);
        let ended = ran(child.wait_with_output().unwrap()).ends(0);
        assert_eq!(ended.err, "", "{args:?}");
    }
}

#[test]
fn two_on_one_file_get_a_clear_error() {
    let home = Home::new();
    home.run(&["send", "--new", "L", "say x"]).ends(0);
    let mut first = start(&home, &["tail", "last", "--after", "0"]);
    let mut out = BufReader::new(first.stdout.take().unwrap());
    read_until(&mut out, "run.finished");
    let second = home.run(&["chats"]).ends(1);
    assert!(second.err.contains("conflict") && second.err.contains("--db"), "{}", second.err);
    home.run(&["--db", "other.db", "chats"]).ends(0);
    first.kill().unwrap();
    first.wait().unwrap();
    home.run(&["chats"]).ends(0);
}

#[test]
fn many_at_once_wait_for_each_other() {
    let home = Home::new();
    home.run(&["send", "--new", "M", "say x"]).ends(0);
    let children: Vec<Child> = (0..4).map(|_| start(&home, &["chats", "--json"])).collect();
    for child in children {
        ran(child.wait_with_output().unwrap()).ends(0);
    }
}

#[test]
fn a_feed_tells_its_items() {
    let home = Home::new();
    home.run(&["send", "--new", "F", "tool; say in the feed"]).ends(0);
    for (args, part) in
        [(&["tail", "last", "--feed"][..], "in the feed"), (&["tail", "last", "--feed", "--json"], "state")]
    {
        let mut child = start(&home, args);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        read_until(&mut out, part);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[cfg(unix)]
mod signals {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    fn signal(child: &Child, signal: Signal) {
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    #[test]
    fn ctrl_c_cancels_the_run_and_then_ends() {
        let home = Home::new();
        let host = home.host(&["--speed", "5"]);
        let mut child = start(&home, &[&host, "send", "--new", "S", "stream 100000"]);
        let mut out = child.stdout.take().unwrap();
        let mut some = [0; 8];
        out.read_exact(&mut some).unwrap();
        signal(&child, Signal::INT);
        drop(std::io::read_to_string(out));
        let ended = ran(child.wait_with_output().unwrap()).ends(130);
        assert!(ended.err.contains("cancelled"), "{}", ended.err);
        let shown = home.run(&[&host, "show", "last", "--json"]).ends(0).one();
        assert_eq!(shown["runs"][0]["status"], "cancelled");
    }

    #[test]
    fn a_second_ctrl_c_ends_at_once_and_leaves_no_host() {
        let home = Home::new();
        let pids = home.path("pids");
        let host = home.host(&["--speed", "5"]);
        let mut command = home.command(&[&host, "send", "--new", "S", "stream 100000"]);
        let mut child =
            command.env("KITPORT_HOST_PID_FILE", &pids).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut some = [0; 8];
        out.read_exact(&mut some).unwrap();
        // A host that is stopped takes no cancel.
        let pid = std::fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        signal(&child, Signal::INT);
        let mut err = BufReader::new(child.stderr.take().unwrap());
        read_until(&mut err, "cancelling");
        signal(&child, Signal::INT);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        // The system ends the host in its own time.
        drop(std::io::read_to_string(err));
        for _ in 0..200 {
            if test_kill_process(pid).is_err() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("the host {pid:?} is still there");
    }

    #[test]
    fn ctrl_c_ends_what_only_reads() {
        let home = Home::new();
        home.run(&["send", "--new", "S", "say x"]).ends(0);
        for way in [Signal::INT, Signal::TERM] {
            let mut child = start(&home, &["tail", "last", "--after", "0"]);
            let mut out = BufReader::new(child.stdout.take().unwrap());
            read_until(&mut out, "run.finished");
            signal(&child, way);
            ran(child.wait_with_output().unwrap()).ends(130);
        }
    }
}

#[cfg(unix)]
mod terminal {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    /// A terminal: the person's side, and the program's.
    fn terminal() -> (File, File) {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        (File::from(person), program)
    }

    #[test]
    fn a_person_is_asked_and_answers() {
        let home = Home::new();
        let (mut person, program) = terminal();
        let mut command = home.command(&["send", "--new", "T", "approve shell; ask; child ask; say All done."]);
        command.stdin(program.try_clone().unwrap()).stdout(Stdio::piped()).stderr(program.try_clone().unwrap());
        let child = command.spawn().unwrap();
        drop((command, program));
        let mut screen = person.try_clone().unwrap();
        let mut seen = String::new();
        // What is no answer is asked again.
        for (question, answer) in [
            ("approve? Run shell", "perhaps\n"),
            ("that is no answer", "y\n"),
            ("Which colour", "2\n"),
            ("a child asks: Which colour", "red\n"),
        ] {
            while !seen.contains(question) {
                let mut some = [0; 1024];
                let count = screen.read(&mut some).unwrap();
                seen.push_str(&String::from_utf8_lossy(&some[..count]));
            }
            seen.clear();
            person.write_all(answer.as_bytes()).unwrap();
        }
        let ended = child.wait_with_output().unwrap();
        let out = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{out} {seen}");
        assert!(out.contains("You answered: blue") && out.ends_with("All done.\n"), "{out}");
    }
}
