//! What is swallowed and what passes, in any chunks.

use futures_util::StreamExt;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

const LIMIT: usize = 100;
const TEXT: u8 = 0x1;

/// A client's frame; `first` holds the FIN bit and the opcode.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(MASKED | length as u8),
        length @ 126..65_536 => {
            bytes.push(MASKED | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(MASKED | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    let mask = [1, 2, 3, 4];
    bytes.extend(mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// What a server reads from these bytes, however they are cut.
async fn messages(bytes: &[u8], chunk_bytes: usize) -> Vec<Message> {
    let chunks = bytes.chunks(chunk_bytes).fold(Chunks::default(), Chunks::then);
    let stream = WebSocketStream::from_raw_socket(FrameLimit::new(chunks, LIMIT), Role::Server, None).await;
    stream.take_while(|message| std::future::ready(message.is_ok())).map(|message| message.unwrap()).collect().await
}

/// A client that sends the given chunks one at a time, and discards what is written to it.
#[derive(Default)]
struct Chunks(std::collections::VecDeque<Vec<u8>>);

impl Chunks {
    fn then(mut self, chunk: &[u8]) -> Self {
        self.0.push_back(chunk.to_vec());
        self
    }
}

impl AsyncRead for Chunks {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(mut chunk) = self.0.pop_front() {
            let rest = chunk.split_off(chunk.len().min(out.remaining()));
            out.put_slice(&chunk);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Chunks {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn notice() -> Message {
    Message::Pong(NOTICE.into())
}

#[tokio::test]
async fn a_message_within_the_limit_passes_untouched() {
    let mut bytes = frame(FIN | TEXT, &[b'a'; LIMIT]);
    bytes.extend(frame(FIN | 0x9, b"ping"));
    bytes.extend(frame(TEXT, b"one "));
    bytes.extend(frame(FIN, b"two"));
    for chunk_bytes in [1, 7, 4096] {
        let seen = messages(&bytes, chunk_bytes).await;
        assert_eq!(seen, [Message::text("a".repeat(LIMIT)), Message::Ping("ping".into()), Message::text("one two")]);
    }
}

#[tokio::test]
async fn an_oversized_message_is_reported_and_the_next_one_is_read() {
    for oversized in [LIMIT + 1, 126, 65_535, 65_536, 1_000_000] {
        let mut bytes = frame(FIN | TEXT, b"before");
        bytes.extend(frame(FIN | TEXT, &vec![b'a'; oversized]));
        bytes.extend(frame(FIN | TEXT, b"after"));
        for chunk_bytes in [3, 1000, 100_000] {
            let seen = messages(&bytes, chunk_bytes).await;
            assert_eq!(seen, [Message::text("before"), notice(), Message::text(""), Message::text("after")]);
        }
    }
}

#[tokio::test]
async fn fragments_count_together() {
    let mut bytes = frame(TEXT, &[b'a'; 60]);
    bytes.extend(frame(0, &[b'b'; 40]));
    bytes.extend(frame(0, b"c"));
    bytes.extend(frame(FIN | 0x9, b"ping"));
    bytes.extend(frame(0, &[b'd'; 500]));
    bytes.extend(frame(FIN, b"e"));
    bytes.extend(frame(FIN | TEXT, b"after"));
    for chunk_bytes in [1, 64, 4096] {
        let seen = messages(&bytes, chunk_bytes).await;
        assert_eq!(seen[0], notice());
        // The remaining fragments are gone; the notice makes the reader skip this message.
        assert!(seen[1].len() <= LIMIT);
        assert_eq!(seen[2..], [Message::Ping("ping".into()), Message::text("after")]);
    }
}

#[tokio::test]
async fn a_frame_that_claims_an_absurd_length_holds_no_memory() {
    let mut bytes = vec![FIN | TEXT, MASKED | 127];
    bytes.extend(u64::MAX.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(vec![b'a'; 1_000_000]);
    let chunks = bytes.chunks(50_000).fold(Chunks::default(), Chunks::then);
    let mut limit = FrameLimit::new(chunks, LIMIT);
    let mut out = Vec::new();
    limit.read_to_end(&mut out).await.unwrap();
    assert!(limit.arrived.capacity() <= 64 * 1024, "{}", limit.arrived.capacity());
    assert!(out.len() < 100);
}
