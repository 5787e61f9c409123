//! Any bytes in any pieces become the lines they are.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kitport_conformance::fuzz_bodies::framing(data));
