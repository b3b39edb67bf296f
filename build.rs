//! Compiles `proto/` without protoc: protox parses, tonic-prost-build generates.

use std::{error::Error, path::PathBuf};

use protox::prost::Message as _;

const FILES: [&str; 5] = [
    "sleuth/account/v1/account.proto",
    "sleuth/agent/v1/agent.proto",
    "sleuth/cluster/v1/cluster.proto",
    "sleuth/executor/v1/executor.proto",
    "sleuth/session/v1/record.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/sleuth");
    let mut compiler = protox::Compiler::new(["proto"])?;
    // Reflection serves the imports too, and comments feed the generated documentation.
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), compiler.file_descriptor_set().encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".sleuth.cluster.v1")
        .bytes(".sleuth.executor.v1")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
