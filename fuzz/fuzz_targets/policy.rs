//! Every text is judged, and a rule that denies makes no verdict milder.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| executor::fuzzing::policy(bytes));
