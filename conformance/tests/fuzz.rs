//! The bodies of the fuzz targets as property tests: what `fuzz/` looks for in depth is looked for here each time.

#![allow(missing_docs, clippy::unwrap_used)]

use kitport_conformance::fuzz_bodies::{framing, projection};
use proptest::prelude::*;

fn config(cases: u32) -> ProptestConfig {
    let cases = if kitport_conformance::long() { cases * 20 } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Lines as a host may write them: raw bytes, events with any content, and JSON that nearly fits.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let event = ("[0-9]", any::<u8>().prop_filter("no end of a line", |byte| *byte != b'\n'), content());
    prop_oneof![
        3 => event.prop_map(|(kind, choice, content)| [kind.as_bytes(), &[choice], content.as_bytes()].concat()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => "\\{\"(id|method|result|jsonrpc)\":(1|\"x\"|null|\\{\\})\\}".prop_map(String::into_bytes),
    ]
}

fn content() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,12}",
        Just("null".to_owned()),
        Just("{}".to_owned()),
        "\\{\"text\":(null|7|\"\\\\ud83e\\\\udd8a\")\\}",
        "\\{\"key\":\"(question|todo|child_question|child_question_answer|mood)\",\"value\":(null|\\[\\]|\\{\"question_id\":\"q\",\"text\":\"t\"\\}|\\{\"child\":\"k\"\\})\\}",
        "\\{\"status\":\"(completed|failed|odd)\",\"text\":(null|\"t\")\\}",
    ]
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn any_bytes_in_any_pieces_are_framed(
        head in any::<[u8; 3]>(),
        bytes in prop::collection::vec(prop_oneof![40 => any::<u8>(), 10 => Just(b'\n'), 1 => Just(b'L')], 0..3000),
    ) {
        framing(&[&head[..], &bytes].concat());
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn any_events_are_projected_without_a_panic_and_in_order(lines in prop::collection::vec(line(), 0..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(projection(&lines.join(&b'\n')));
    }
}
