//! Room for connections that have not asked anything, or not yet again.
//!
//! Whoever opens sockets and sends nothing, or a header byte now and then, must not keep others out. So the lobby has
//! room for a fixed number, and when it is full the one that has waited longest leaves. A real browser asks at once
//! and is never there for long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug)]
pub(crate) struct Lobby {
    waiting: Arc<Mutex<Waiting>>,
    waiting_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    arrivals: u64,
    /// By order of arrival.
    places: BTreeMap<u64, CancellationToken>,
}

/// One connection's membership; it leaves when dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    lobby: Lobby,
    shown_out: CancellationToken,
    place: Mutex<Option<u64>>,
}

impl Lobby {
    pub(crate) fn new(waiting_max: usize) -> Self {
        Self { waiting: Arc::default(), waiting_max }
    }

    /// The one that has waited longest has to go.
    pub(crate) fn make_room(&self) {
        self.waiting().close_oldest();
    }

    /// A new connection, waiting to ask something.
    pub(crate) fn enter(&self) -> Guest {
        let guest = Guest { lobby: self.clone(), shown_out: CancellationToken::new(), place: Mutex::new(None) };
        guest.wait();
        guest
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn close_oldest(&mut self) {
        if let Some((_, longest)) = self.places.pop_first() {
            tracing::debug!("too many connections wait to ask something: the oldest is closed");
            longest.cancel();
        }
    }
}

impl Guest {
    /// Done when the connection has to make room.
    pub(crate) async fn shown_out(&self) {
        self.shown_out.cancelled().await;
    }

    /// It asked something: nobody may show it out while it is served.
    pub(crate) fn serve(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = place.take() {
            self.lobby.waiting().places.remove(&place);
        }
    }

    /// It waits (again).
    pub(crate) fn wait(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = self.lobby.waiting();
        if place.is_some() {
            return;
        }
        if waiting.places.len() >= self.lobby.waiting_max {
            waiting.close_oldest();
        }
        waiting.arrivals += 1;
        let arrival = waiting.arrivals;
        waiting.places.insert(arrival, self.shown_out.clone());
        *place = Some(arrival);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.serve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITING_MAX: usize = 32;

    #[test]
    fn a_full_lobby_shows_out_the_one_that_waited_longest() {
        let lobby = Lobby::new(WAITING_MAX);
        let guests: Vec<Guest> = (0..WAITING_MAX).map(|_| lobby.enter()).collect();
        assert!(guests.iter().all(|guest| !guest.shown_out.is_cancelled()));
        guests[0].serve();
        guests[0].wait();
        let late = lobby.enter();
        assert!(guests[1].shown_out.is_cancelled());
        assert!(!guests[0].shown_out.is_cancelled() && !late.shown_out.is_cancelled());
    }

    #[test]
    fn who_is_served_or_gone_takes_no_room() {
        let lobby = Lobby::new(WAITING_MAX);
        let served = lobby.enter();
        served.serve();
        drop(lobby.enter());
        let guests: Vec<Guest> = (0..WAITING_MAX).map(|_| lobby.enter()).collect();
        assert!(!served.shown_out.is_cancelled());
        assert!(guests.iter().all(|guest| !guest.shown_out.is_cancelled()));
    }
}
