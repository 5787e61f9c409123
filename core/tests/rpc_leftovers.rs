//! Nothing is left of a connection that was closed. Alone in its program, because it counts what the process has.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod rpc_support;

use std::time::Duration;

use kitport::rpc::{Client, HostCommand, Patience, Recorder, Timeout};
use rpc_support::{Events, Inbox, eventually, options, soon};
use serde_json::json;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The threads of the engine. Those of the runtime and of the test program have other names.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with("kitport-")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_thread_descriptor_or_process_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let start = || async {
        let mut options = options();
        options.patience = Patience::new(Duration::from_millis(30), Duration::from_millis(30));
        options.recorder = Some(Recorder::to_file(folder.path().join("recording")).unwrap());
        soon(Client::spawn::<Events>(&HostCommand::new("cat"), Inbox::new(), options)).await.unwrap()
    };
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let first = start().await;
    soon(first.close()).await;
    // Also while its handle is still there.
    eventually("the first one's threads are gone", || threads().is_empty()).await;
    drop(first);
    let before = (descriptors(), tasks());
    let mut pids = Vec::new();
    for round in 0..200 {
        let client = start().await;
        pids.push(client.pid().unwrap());
        match round % 4 {
            // Echoed as a request, refused, and so answered.
            0 => drop(soon(client.call("m", &json!({}), Timeout::Never)).await),
            1 => drop(tokio::spawn(client.call("m", &json!({}), Timeout::Never))),
            _ => {}
        }
        if round % 2 == 0 {
            soon(client.close()).await;
            assert_eq!(client.calls_waiting(), 0);
        }
    }
    eventually("the threads are gone", || threads().is_empty()).await;
    // At most: what the first one left may have gone only since.
    eventually("the descriptors and tasks are gone", || descriptors() <= before.0 && tasks() <= before.1).await;
    assert!(pids.iter().all(|&pid| !rpc_support::lives(pid)));
}
