//! Limits the connections that have not sent a request yet, or not another one.
//!
//! A client that opens sockets and sends nothing, or a header byte now and then, must not block others. So there is
//! room for a fixed number of idle connections, and when it is full the one that has waited longest is closed. A real
//! browser sends its request at once and is never idle for long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug)]
pub(crate) struct IdleConnections {
    waiting: Arc<Mutex<Waiting>>,
    waiting_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    arrivals: u64,
    /// By order of arrival.
    places: BTreeMap<u64, CancellationToken>,
}

/// One connection; removed when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    idle: IdleConnections,
    evicted: CancellationToken,
    place: Mutex<Option<u64>>,
}

impl IdleConnections {
    pub(crate) fn new(waiting_max: usize) -> Self {
        Self { waiting: Arc::default(), waiting_max }
    }

    /// Closes the connection that has waited longest.
    pub(crate) fn make_room(&self) {
        self.waiting().close_oldest();
    }

    /// A new connection, which has not sent a request yet.
    pub(crate) fn enter(&self) -> ConnectionSlot {
        let slot = ConnectionSlot { idle: self.clone(), evicted: CancellationToken::new(), place: Mutex::new(None) };
        slot.set_idle();
        slot
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn close_oldest(&mut self) {
        if let Some((_, longest)) = self.places.pop_first() {
            tracing::debug!("too many idle connections: the oldest is closed");
            longest.cancel();
        }
    }
}

impl ConnectionSlot {
    /// Completes when the connection has to close.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// It sent a request: it is not closed while the request is served.
    pub(crate) fn set_busy(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = place.take() {
            self.idle.waiting().places.remove(&place);
        }
    }

    /// It is idle (again).
    pub(crate) fn set_idle(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = self.idle.waiting();
        if place.is_some() {
            return;
        }
        if waiting.places.len() >= self.idle.waiting_max {
            waiting.close_oldest();
        }
        waiting.arrivals += 1;
        let arrival = waiting.arrivals;
        waiting.places.insert(arrival, self.evicted.clone());
        *place = Some(arrival);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.set_busy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITING_MAX: usize = 32;

    #[test]
    fn when_all_slots_are_taken_the_one_that_waited_longest_is_evicted() {
        let idle = IdleConnections::new(WAITING_MAX);
        let guests: Vec<ConnectionSlot> = (0..WAITING_MAX).map(|_| idle.enter()).collect();
        assert!(guests.iter().all(|slot| !slot.evicted.is_cancelled()));
        guests[0].set_busy();
        guests[0].set_idle();
        let late = idle.enter();
        assert!(guests[1].evicted.is_cancelled());
        assert!(!guests[0].evicted.is_cancelled() && !late.evicted.is_cancelled());
    }

    #[test]
    fn a_busy_or_closed_connection_takes_no_slot() {
        let idle = IdleConnections::new(WAITING_MAX);
        let served = idle.enter();
        served.set_busy();
        drop(idle.enter());
        let guests: Vec<ConnectionSlot> = (0..WAITING_MAX).map(|_| idle.enter()).collect();
        assert!(!served.evicted.is_cancelled());
        assert!(guests.iter().all(|slot| !slot.evicted.is_cancelled()));
    }
}
