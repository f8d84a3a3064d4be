//! Who may render at once, in the whole process.
//!
//! Rendering is made on threads of its own, never on those that serve sockets and sessions. Of those threads only so many
//! work at the same time: hundreds of windows that all want something long must not take every core from the rest.

use std::sync::{Arc, LazyLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

/// Long texts of four sessions never keep a fifth waiting, on however small a machine.
const AT_ONCE_MIN: usize = 5;
/// More would only wait for each other.
const AT_ONCE_MAX: usize = 16;

static PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new((2 * cores).clamp(AT_ONCE_MIN, AT_ONCE_MAX)))
});

/// A place among those who render, until it is dropped. First come, first served.
pub(crate) async fn permit() -> Option<OwnedSemaphorePermit> {
    // It is never closed; if it were, rendering without a place is better than none.
    Arc::clone(&PERMITS).acquire_owned().await.ok()
}

/// Does `work` off the async threads. Work that has begun is finished even when nobody waits for it any more.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    let permit = permit().await;
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
}
