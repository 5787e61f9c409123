//! A backend that panics: an error for this call, and the door goes on.

use serde_json::json;

use super::door;
use crate::error::{KitError, Outcome};

fn assert_panicked(error: KitError, name: &str, outcome: Option<Outcome>) {
    assert_eq!(error.code(), "failed");
    assert_eq!(error.message(), format!("{name} failed: the backend panicked"));
    assert_eq!(error.outcome(), outcome);
}

#[tokio::test]
async fn a_panic_in_a_call_is_an_error_and_the_next_call_works() {
    let (notes, door) = door();
    for (method, params, outcome) in [
        ("counters", json!({}), None),
        ("list_chats", json!({}), None),
        ("cancel", json!({"chat": "a"}), Some(Outcome::Unknown)),
        ("set_config", json!({}), Some(Outcome::Unknown)),
    ] {
        *notes.panics.lock().unwrap() = Some(method);
        assert_panicked(door.call(method, params.clone()).await.unwrap_err(), method, outcome);
        *notes.panics.lock().unwrap() = None;
        door.call(method, params).await.unwrap();
    }
}

#[tokio::test]
async fn a_panic_when_a_stream_opens_is_an_error_and_the_next_one_opens() {
    let (notes, door) = door();
    for (stream, params, outcome) in
        [("watch_all", json!({}), None), ("run", json!({"chat": "a", "text": "t"}), Some(Outcome::Unknown))]
    {
        *notes.panics.lock().unwrap() = Some(stream);
        assert_panicked(door.open_async(stream, params.clone()).await.unwrap_err(), stream, outcome);
        *notes.panics.lock().unwrap() = None;
        door.open_async(stream, params).await.unwrap();
    }
}
