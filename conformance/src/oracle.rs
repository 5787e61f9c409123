//! What must come: the positions of durable events, told by a host's own log and by nothing of the adapter.

use kitport::model::{Event, Seq};
use kitport::rpc::{Client, ClientOptions, HostCommand, Inbound, Notifications};
use serde_json::{Value, json};

/// Where each durable event stands that a host event gives, by its type and data: the table of the contract.
fn positions(event: &Value) -> &'static [u64] {
    let data = &event["data"];
    match event["type"].as_str().unwrap_or_default() {
        "run_started"
        | "run_waiting_for_quota"
        | "run_quota_resumed"
        | "tool_started"
        | "tool_finished"
        | "approval_requested"
        | "approval_resolved" => &[0],
        "run_finished" if data["text"].is_null() => &[1],
        "run_finished" => &[0, 1],
        "host_state_changed" => match data["key"].as_str() {
            Some("todo") => &[0],
            Some("question") if data["value"].is_null() => &[0],
            Some("question") => &[1],
            _ => &[],
        },
        "output.record" if data["output"]["kind"] == "text" => &[0],
        _ => &[],
    }
}

/// The kit sequences that the events of a host's log give.
pub fn sequences(log: &[Value]) -> Vec<Seq> {
    log.iter()
        .flat_map(|event| {
            let host = event["sequence"].as_u64().expect("a durable event has a sequence");
            positions(event).iter().map(move |position| Seq(host * 16 + position))
        })
        .collect()
}

/// The sequences of the durable ones.
pub fn durable_sequences(events: &[Event]) -> Vec<Seq> {
    events.iter().filter(|event| event.durable).map(|event| event.seq).collect()
}

/// Nobody listens.
struct Deaf;

impl Notifications for Deaf {
    type Item = ();

    fn read<'de, D: serde::Deserializer<'de>>(_: &str, _: D) -> Result<Option<()>, D::Error> {
        Ok(None)
    }
}

impl Inbound<Deaf> for Deaf {
    fn notifications(&mut self, _: &mut Vec<()>) {}

    fn malformed(&mut self, _: &str, _: Option<&serde_json::value::RawValue>) {}

    fn oversize(&mut self) {}

    fn ended(&mut self, _: &kitport::rpc::Ended) {}
}

/// The whole log of each session, asked of a fresh host by plain requests.
pub async fn logs(command: &HostCommand, sessions: &[&str]) -> Vec<Vec<Value>> {
    let options = ClientOptions::new(tokio::runtime::Handle::current());
    let client = Client::spawn(command, Deaf, options).await.expect("the host starts");
    let call = async |method: &str, params: Value| -> Value {
        client.call_as(method, &params, Default::default()).await.expect("the host answers")
    };
    let hello = json!({"protocol_version": "0.1", "client": {"name": "oracle", "version": "1"},
        "features": kitport::bubblepaw::wire::feature::ALL});
    call("initialize", hello).await;
    let mut logs = Vec::new();
    for session in sessions {
        let mut log: Vec<Value> = Vec::new();
        loop {
            let after = log.last().map_or(0, |event| event["sequence"].as_u64().expect("it has a sequence"));
            let mut page = call("events.after", json!({"session_id": session, "after": after, "limit": 1000})).await;
            let Value::Array(events) = page["events"].take() else { panic!("a page has events") };
            log.extend(events);
            if page["has_more"] != true {
                break;
            }
        }
        logs.push(log);
    }
    client.close().await;
    logs
}
