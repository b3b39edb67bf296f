//! What is understood of a command, written out, is understood the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| executor::fuzzing::parser(bytes));
