//! Coordinates the reading and the writing half of one window.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::progress::Written;

/// The most requests read in a row before the writer gets its turn. A client that sends requests without reading the
/// answers is no longer read from, so that its answers need not be stored; the hub's outbox has room for many times
/// this.
const REQUESTS_AHEAD_MAX: usize = 256;

pub(super) struct Flow {
    received_at: Mutex<Instant>,
    asked_ahead: AtomicUsize,
    writing: AtomicBool,
    wrote: Notify,
    written: Written,
}

impl Flow {
    pub(super) fn new(written: Written) -> Self {
        Self {
            received_at: Mutex::new(Instant::now()),
            asked_ahead: AtomicUsize::new(0),
            writing: AtomicBool::new(false),
            wrote: Notify::new(),
            written,
        }
    }

    /// The client sent something.
    pub(super) fn received(&self) {
        *self.received_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Completes when the client was silent for so long. While it receives a long answer it has not seen the ping
    /// behind it: then only a stalled transfer counts, and the time starts again at the end of the answer.
    pub(super) async fn silent_for(&self, limit: Duration) {
        let (mut taken, mut was_writing) = (0, false);
        loop {
            let deadline = *self.received_at.lock().unwrap_or_else(PoisonError::into_inner) + limit;
            if Instant::now() < deadline {
                was_writing = false;
                tokio::time::sleep_until(deadline).await;
                continue;
            }
            let before = std::mem::replace(&mut taken, self.written.load(Ordering::Relaxed));
            let is_writing = self.writing.load(Ordering::Acquire);
            if !is_writing && !was_writing || before == taken {
                return;
            }
            was_writing = is_writing;
            tokio::time::sleep(limit).await;
        }
    }

    /// A request was read.
    pub(super) fn request_read(&self) {
        self.asked_ahead.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a write to its end; the reader waits for it if it gets too far ahead.
    pub(super) async fn during_write<T>(&self, write: impl Future<Output = T>) -> T {
        self.writing.store(true, Ordering::Release);
        let written = write.await;
        self.asked_ahead.store(0, Ordering::Relaxed);
        self.writing.store(false, Ordering::Release);
        self.wrote.notify_one();
        written
    }

    /// Gives the writer its turn after so many requests, and waits for a write that does not end.
    pub(super) async fn may_read(&self) {
        while self.asked_ahead.load(Ordering::Relaxed) >= REQUESTS_AHEAD_MAX {
            // A full buffer of small frames would otherwise be read to its end before the first answer is written.
            tokio::task::yield_now().await;
            if !self.writing.load(Ordering::Acquire) {
                self.asked_ahead.store(0, Ordering::Relaxed);
                return;
            }
            self.wrote.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_no_answers_is_not_read_from() {
        let flow = Flow::new(Written::default());
        let (written, stalled) = oneshot::channel::<()>();
        let mut write = std::pin::pin!(flow.during_write(stalled));
        assert!(write.as_mut().now_or_never().is_none());
        for _ in 0..REQUESTS_AHEAD_MAX {
            assert!(flow.may_read().now_or_never().is_some());
            flow.request_read();
        }
        let mut room = std::pin::pin!(flow.may_read());
        assert!(room.as_mut().now_or_never().is_none());
        written.send(()).unwrap();
        write.await.unwrap();
        room.await;
    }

    #[tokio::test]
    async fn requests_without_an_answer_hold_nothing_up() {
        let flow = Flow::new(Written::default());
        for _ in 0..10 * REQUESTS_AHEAD_MAX {
            flow.may_read().await;
            flow.request_read();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_a_long_answer_is_not_silent_until_it_stands_still() {
        let (written, limit) = (Written::default(), Duration::from_secs(60));
        let flow = Flow::new(Written::clone(&written));
        let begun = Instant::now();
        let (end, ending) = oneshot::channel::<()>();
        let client = async {
            // It takes a little every ten seconds for ten minutes, and then nothing more.
            for _ in 0..60 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                written.fetch_add(1, Ordering::Relaxed);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = flow.silent_for(limit) => {}
            _ = flow.during_write(ending) => {}
            () = client => {}
        }
        drop(end);
        let patience = begun.elapsed();
        assert!((Duration::from_secs(600)..=Duration::from_secs(720)).contains(&patience), "{patience:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_write_does_not_reset_the_silence() {
        let (written, limit) = (Written::default(), Duration::from_secs(60));
        let flow = Flow::new(Written::clone(&written));
        let begun = Instant::now();
        let pings = async {
            loop {
                tokio::time::sleep(Duration::from_secs(20)).await;
                flow.during_write(async { written.fetch_add(2, Ordering::Relaxed) }).await;
            }
        };
        tokio::select! {
            () = flow.silent_for(limit) => {}
            () = pings => {}
        }
        assert_eq!(begun.elapsed(), limit);
    }

    #[tokio::test]
    async fn only_silence_counts_as_silence() {
        let flow = Flow::new(Written::default());
        flow.silent_for(Duration::from_millis(1)).await;
        flow.received();
        assert!(flow.silent_for(Duration::from_secs(3600)).now_or_never().is_none());
    }
}
