//! What is masked does not depend on the pieces in which it comes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| executor::fuzzing::redactor(bytes));
