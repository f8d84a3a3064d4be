//! Faults of ours: a panic is caught where its owner can still tell those who are concerned.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

/// A panic, and what it said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fault of ours: {0}")]
pub(crate) struct Fault(String);

/// Runs a future. What it may leave half done must not be looked at afterwards, or be whole at every await.
pub(crate) async fn contained<T>(future: impl Future<Output = T>) -> Result<T, Fault> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(Fault::of)
}

/// The same for a plain function.
pub(crate) fn contained_now<T>(act: impl FnOnce() -> T) -> Result<T, Fault> {
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
