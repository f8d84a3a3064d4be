//! Faults of ours: a panic is caught where its owner can still settle what it owns and tell those who are concerned.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A panic, and what it said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fault of ours: {0}")]
pub struct Fault(String);

/// Runs a future. What it may leave half done must not be trusted afterwards.
pub async fn contained<T>(future: impl Future<Output = T>) -> Result<T, Fault> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match contained_now(|| future.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(fault) => Poll::Ready(Err(fault)),
    })
    .await
}

/// The same for a plain function.
pub fn contained_now<T>(act: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(act)).map_err(Fault::of)
}

impl Fault {
    fn of(panic: Box<dyn Any + Send>) -> Self {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        Self(words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_words() {
        assert_eq!(contained(async { 7 }).await, Ok(7));
        assert_eq!(contained(async { panic!("no {}", "way") }).await, Err::<(), _>(Fault("no way".into())));
        assert_eq!(contained_now(|| panic!("plain")), Err::<(), _>(Fault("plain".into())));
    }
}
