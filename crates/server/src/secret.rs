//! The secret that opens the door, and the one-time ticket that stands in for it.
//!
//! Compared in constant time, never printed by accident. Where it is kept is the catalog's business.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use subtle::ConstantTimeEq;

/// Who knows it may use this server.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Constant time in everything but the length, which is no secret.
    pub fn matches(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }

    /// For the link that is shown to the user and the cookie that is handed to the browser; nowhere else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A link that works once. The browser we start gets one of these: its command line can be read by every user of the
/// machine, and by then it is worth nothing.
#[derive(Clone, Debug, Default)]
pub struct Ticket(Arc<Mutex<Option<Secret>>>);

impl Ticket {
    /// A new ticket; the one before it is void.
    pub fn issue(&self) -> Secret {
        let ticket = Secret::new(format!("once-{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ticket.clone());
        ticket
    }

    /// True once for the right ticket.
    pub fn redeem(&self, offered: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_if(|ticket| ticket.matches(offered)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_secret_matches_and_it_is_never_printed() {
        let secret = Secret::new("abc");
        assert!(secret.matches("abc"));
        for wrong in ["", "ab", "abcd", "abd", "ABC"] {
            assert!(!secret.matches(wrong), "{wrong}");
        }
        assert!(!format!("{secret:?}").contains("abc"));
    }

    #[test]
    fn a_ticket_works_once_and_a_wrong_guess_does_not_use_it_up() {
        let tickets = Ticket::default();
        assert!(!tickets.redeem(""));
        let ticket = tickets.issue();
        assert!(!tickets.redeem("once-00"));
        assert!(tickets.redeem(ticket.reveal()));
        assert!(!tickets.redeem(ticket.reveal()));
    }
}
