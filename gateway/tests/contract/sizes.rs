//! Bodies that are too large, from clients that do not stop sending.

use gateway::Config;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{agent::Act, conversation::plain, world::World};

const MIB: usize = 1 << 20;

/// Sends all of a body before it reads anything of the answer.
async fn stubborn(head: &str, chunk: &[u8], chunks: usize) -> String {
    let world = World::new(Config { body_limit: MIB, ..Config::default() }, Act::Play(plain())).await;
    let address = &world.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("POST /api/chat HTTP/1.1\r\nhost: {address}\r\nx-request-id: big-1\r\n{head}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..chunks {
        stream.write_all(chunk).await.unwrap();
    }
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test]
async fn a_client_that_goes_on_sending_reads_why_it_is_refused() {
    let piece = vec![b' '; MIB];
    let announced = stubborn(&format!("content-length: {}", 8 * MIB), &piece, 8).await;
    let framed = [format!("{MIB:x}\r\n").into_bytes(), piece, b"\r\n".to_vec()].concat();
    let chunked = stubborn("transfer-encoding: chunked", &framed, 8).await;
    for answer in [announced, chunked] {
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("x-request-id: big-1"), "{answer}");
        assert!(answer.contains("larger than 1048576 bytes"), "{answer}");
    }
}
