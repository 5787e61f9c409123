//! Any events of a host are projected without a panic and in order.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(kitport_conformance::fuzz_bodies::projection(data));
});
