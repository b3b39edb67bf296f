//! The tests' MCP server as a program that speaks over its standard streams.

#[path = "../tests/demo/mod.rs"]
mod demo;

use rmcp::ServiceExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    demo::Demo.serve(rmcp::transport::io::stdio()).await?.waiting().await?;
    Ok(())
}
