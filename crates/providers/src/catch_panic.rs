//! Panics of ours, caught where the owner can still settle what it owns and report the failure.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A panic, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal error: {0}")]
pub struct Panic(String);

/// Runs a future. State that it may have left half changed must not be trusted afterwards.
pub async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, Panic> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match catch_panic_now(|| future.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// The same for a plain function.
pub fn catch_panic_now<T>(act: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(act)).map_err(Panic::from_payload)
}

impl Panic {
    fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        let message = payload.downcast_ref::<&str>().map(ToString::to_string);
        Self(message.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(catch_panic(async { 7 }).await, Ok(7));
        assert_eq!(catch_panic(async { panic!("no {}", "way") }).await, Err::<(), _>(Panic("no way".into())));
        assert_eq!(catch_panic_now(|| panic!("plain")), Err::<(), _>(Panic("plain".into())));
    }
}
