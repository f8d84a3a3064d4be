//! Filters oversized WebSocket messages, so that one can be answered with an error instead of ending the connection.
//!
//! Comes in: the raw bytes of a client. Goes out: the same bytes, except that a message over the limit is skipped as it
//! arrives, whatever its length, and replaced by an empty one after a [`NOTICE`]. The WebSocket library would close the
//! connection at the header of such a frame. Kept out: the meaning of messages, and writing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::bytes::{Buf, BytesMut};
use tokio_util::io::poll_read_buf;

/// The payload of the pong before an oversized message. It is in-band, so that the order is kept; a client that sends
/// it itself only spoils its own next message.
pub(super) const NOTICE: &[u8] = b"liminal: the next message was too big";

/// How much is read at a time.
const CHUNK_BYTES: usize = 8 * 1024;

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const CONTINUATION: u8 = 0x0;
const FIRST_CONTROL: u8 = 0x8;
const PONG: u8 = 0xa;

pub(super) struct FrameLimit<S> {
    inner: S,
    message_bytes_max: u64,
    /// Read but not parsed yet; at most a chunk and a frame's header.
    arrived: BytesMut,
    /// Parsed but not returned yet.
    passed: BytesMut,
    place: FramePosition,
    /// Bytes of the message whose fragments are being passed on.
    message_bytes: u64,
    /// The remaining fragments of the current message are skipped.
    cutting: bool,
}

enum FramePosition {
    Header,
    Passing(u64),
    Skipping(u64),
}

struct Header {
    bytes: usize,
    is_final: bool,
    opcode: u8,
    payload_bytes: u64,
}

impl<S> FrameLimit<S> {
    pub(super) fn new(inner: S, message_bytes_max: usize) -> Self {
        Self {
            inner,
            message_bytes_max: message_bytes_max as u64,
            arrived: BytesMut::new(),
            passed: BytesMut::new(),
            place: FramePosition::Header,
            message_bytes: 0,
            cutting: false,
        }
    }

    /// Parses the available bytes; false when it needs more.
    fn advance(&mut self) -> bool {
        match self.place {
            FramePosition::Header => match Header::parse(&self.arrived) {
                Some(header) => self.on_header(&header),
                None => return false,
            },
            FramePosition::Passing(0) | FramePosition::Skipping(0) => self.place = FramePosition::Header,
            _ if self.arrived.is_empty() => return false,
            FramePosition::Passing(left) => {
                let part = self.arrived.split_to(at_most(left, self.arrived.len()));
                self.place = FramePosition::Passing(left - part.len() as u64);
                self.passed.unsplit(part);
            }
            FramePosition::Skipping(left) => {
                let part = at_most(left, self.arrived.len());
                self.arrived.advance(part);
                self.place = FramePosition::Skipping(left - part as u64);
            }
        }
        true
    }

    fn on_header(&mut self, header: &Header) {
        let is_continuation = header.opcode == CONTINUATION;
        let head = self.arrived.split_to(header.bytes);
        if header.opcode < FIRST_CONTROL {
            if is_continuation && self.cutting {
                self.cutting = !header.is_final;
                self.place = FramePosition::Skipping(header.payload_bytes);
                return;
            }
            let before = if is_continuation { self.message_bytes } else { 0 };
            self.message_bytes = before.saturating_add(header.payload_bytes);
            if self.message_bytes > self.message_bytes_max {
                self.cutting = !header.is_final;
                self.place = FramePosition::Skipping(header.payload_bytes);
                push_frame(&mut self.passed, PONG, NOTICE);
                push_frame(&mut self.passed, header.opcode, b"");
                return;
            }
        }
        self.passed.unsplit(head);
        self.place = FramePosition::Passing(header.payload_bytes);
    }
}

impl Header {
    /// `None` until all of it is there.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, second) = (*bytes.first()?, *bytes.get(1)?);
        let (length_bytes, payload_bytes) = match second & !MASKED {
            126 => (2, u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
            127 => (8, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)),
            length => (0, u64::from(length)),
        };
        let mask_bytes = if second & MASKED == 0 { 0 } else { 4 };
        let header = 2 + length_bytes + mask_bytes;
        (bytes.len() >= header).then_some(Self {
            bytes: header,
            is_final: first & FIN != 0,
            opcode: first & OPCODE,
            payload_bytes,
        })
    }
}

/// A final frame as a client writes it, under a mask of zeros. `payload` is shorter than 126 bytes.
fn push_frame(into: &mut BytesMut, opcode: u8, payload: &[u8]) {
    into.extend_from_slice(&[FIN | opcode, MASKED | payload.len() as u8, 0, 0, 0, 0]);
    into.extend_from_slice(payload);
}

fn at_most(left: u64, available: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(available)
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameLimit<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.passed.is_empty() {
            if this.advance() {
                continue;
            }
            this.arrived.reserve(CHUNK_BYTES);
            if ready!(poll_read_buf(Pin::new(&mut this.inner), context, &mut this.arrived))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        let part = this.passed.len().min(out.remaining());
        out.put_slice(&this.passed.split_to(part));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameLimit<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
#[path = "frame_limit_tests.rs"]
mod tests;
