//! `timeoutMs`, which every method takes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::params::{CallLimit, split_limit};
use super::super::{finite, table::METHODS};
use super::door;
use crate::call::Limit;

async fn limit_of(timeout: Option<Value>) -> Limit {
    let (notes, door) = door();
    let mut params = json!({"chat": "a"});
    if let Some(timeout) = timeout {
        params["timeoutMs"] = timeout;
    }
    door.call("cancel", params).await.unwrap();
    notes.taken().remove(0).1
}

#[tokio::test]
async fn a_number_limits_null_frees_and_nothing_is_the_default() {
    for (number, time) in [
        (json!(1500), Duration::from_millis(1500)),
        (json!(0.5), Duration::from_micros(500)),
        (json!(0), Duration::ZERO),
    ] {
        let before = Instant::now() + time;
        let Limit::Until(end) = limit_of(Some(number)).await else { panic!("no limit") };
        assert!(before <= end && end <= Instant::now() + time);
    }
    assert_eq!(limit_of(Some(json!(1e22))).await, Limit::None, "longer than the clock runs");
    assert_eq!(limit_of(Some(Value::Null)).await, Limit::None);
    assert_eq!(limit_of(None).await, Limit::Default);
}

#[tokio::test]
async fn any_other_limit_is_refused_by_its_name_and_nothing_is_called() {
    let (notes, door) = door();
    for bad in [json!(-1), json!(-0.5), json!("5"), json!(true), json!({}), json!([]), json!(1e300)] {
        let error = door.call("cancel", json!({"chat": "a", "timeoutMs": bad})).await.unwrap_err();
        assert_eq!(error.code(), "invalid");
        assert!(error.message().starts_with("cancel: timeoutMs: "), "{error}");
    }
    assert!(notes.taken().is_empty());
}

#[test]
fn every_method_takes_one() {
    for row in METHODS {
        let (limit, params) = split_limit(row.name, json!({"timeoutMs": 1, "chat": "a"})).unwrap();
        assert_eq!((limit, params), (CallLimit::Within(Duration::from_millis(1)), json!({"chat": "a"})));
    }
}

#[tokio::test]
async fn a_number_that_json_does_not_know_never_gets_behind_the_border() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = finite("timeoutMs", number).unwrap_err();
        assert_eq!((error.code(), error.message()), ("invalid", "timeoutMs: expected a finite number"));
    }
    assert_eq!(Value::from(finite("timeoutMs", 1.5).unwrap()), json!(1.5));
    let (notes, door) = door();
    for text in ["NaN", "Infinity", "-Infinity", "1e999"] {
        let error = door.call_json("cancel", &format!(r#"{{"chat": "a", "timeoutMs": {text}}}"#)).await.unwrap_err();
        assert!(error.code() == "invalid" && error.message().starts_with("cancel: "), "{error}");
    }
    assert!(notes.taken().is_empty());
}
