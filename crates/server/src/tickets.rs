//! One-time links, for the browser that is started for the user.
//!
//! A ticket lives thirty seconds, is redeemed once, and gives one browser a credential. `connection_owner.rs` checks
//! who may redeem it, and a refusal does not use it up.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use catalog::{RedirectFile, random_secret};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::connection_owner::ConnectionOwner;
use crate::secret::Secret;

/// The time for a browser to start and to request the page.
pub(crate) const TICKET_LIFETIME: Duration = Duration::from_secs(30);
/// The most browsers that are being started at once. Beyond it the oldest ticket is dropped.
const TICKETS_MAX: usize = 8;
const PREFIX: &str = "once-";

/// How a ticket reaches the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Readable by every user of this machine: only a connection of our own user may redeem it.
    CommandLine,
    /// In a file that only our user can read.
    PrivateFile,
}

/// The tickets that can still be redeemed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tickets(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    open: Mutex<Vec<Ticket>>,
    issued: Notify,
}

#[derive(Debug)]
struct Ticket {
    text: Secret,
    expires: Instant,
    delivery: Delivery,
    /// Removed with the ticket.
    _file: Option<RedirectFile>,
}

/// Whether this token has the form of a ticket.
pub(crate) fn is_ticket(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// A new, unique ticket.
pub(crate) fn new_ticket() -> io::Result<Secret> {
    Ok(Secret::new(format!("{PREFIX}{}", random_secret()?)))
}

impl Tickets {
    pub(crate) fn add(&self, text: Secret, delivery: Delivery, file: Option<RedirectFile>, now: Instant) {
        let mut open = self.open(now);
        if open.len() >= TICKETS_MAX {
            open.remove(0);
        }
        open.push(Ticket { text, expires: now + TICKET_LIFETIME, delivery, _file: file });
        drop(open);
        self.0.issued.notify_one();
    }

    /// Whether this is a ticket that could be redeemed now.
    pub(crate) fn knows(&self, offered: &str, now: Instant) -> bool {
        self.open(now).iter().fold(false, |found, ticket| found | ticket.text.matches(offered))
    }

    /// True once for the right ticket, in time, over the right connection. Nothing else uses it up.
    pub(crate) fn redeem(&self, offered: &str, peer: ConnectionOwner, now: Instant) -> bool {
        let mut open = self.open(now);
        let Some(at) = open.iter().position(|ticket| ticket.text.matches(offered)) else { return false };
        let may = match (peer, open[at].delivery) {
            (ConnectionOwner::Ours, _) | (ConnectionOwner::Unknown, Delivery::PrivateFile) => true,
            (ConnectionOwner::Other, _) | (ConnectionOwner::Unknown, Delivery::CommandLine) => false,
        };
        if may {
            open.remove(at);
        }
        may
    }

    /// Removes expired tickets and their files; all of them at the end.
    pub(crate) async fn expire(&self, stop: &CancellationToken) {
        let expiring = async {
            loop {
                let next = self.open(Instant::now()).first().map(|ticket| ticket.expires);
                match next {
                    Some(expires) => tokio::time::sleep_until(expires.into()).await,
                    None => self.0.issued.notified().await,
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = expiring => {}
        }
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn open(&self, now: Instant) -> MutexGuard<'_, Vec<Ticket>> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|ticket| now < ticket.expires);
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued(tickets: &Tickets, delivery: Delivery, now: Instant) -> Secret {
        let text = new_ticket().unwrap();
        tickets.add(text.clone(), delivery, None, now);
        text
    }

    #[test]
    fn a_ticket_works_once_and_a_wrong_guess_does_not_use_it_up() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        assert!(!tickets.redeem("", ConnectionOwner::Ours, now));
        let ticket = issued(&tickets, Delivery::CommandLine, now);
        assert!(is_ticket(ticket.reveal()) && ticket.reveal().len() > 64);
        assert!(!tickets.redeem("once-00", ConnectionOwner::Ours, now) && !tickets.knows("once-00", now));
        assert!(tickets.knows(ticket.reveal(), now));
        assert!(tickets.redeem(ticket.reveal(), ConnectionOwner::Ours, now));
        assert!(!tickets.redeem(ticket.reveal(), ConnectionOwner::Ours, now) && !tickets.knows(ticket.reveal(), now));
    }

    #[test]
    fn a_ticket_lives_thirty_seconds() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let (early, late) =
            (issued(&tickets, Delivery::CommandLine, now), issued(&tickets, Delivery::PrivateFile, now));
        assert!(tickets.redeem(early.reveal(), ConnectionOwner::Ours, now + Duration::from_millis(29_999)));
        assert!(!tickets.redeem(late.reveal(), ConnectionOwner::Ours, now + Duration::from_secs(30)));
        assert!(!tickets.knows(late.reveal(), now + Duration::from_secs(30)));
    }

    #[test]
    fn another_user_cannot_redeem_a_ticket_and_does_not_use_it_up() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let (line, file) = (issued(&tickets, Delivery::CommandLine, now), issued(&tickets, Delivery::PrivateFile, now));
        for ticket in [&line, &file] {
            assert!(!tickets.redeem(ticket.reveal(), ConnectionOwner::Other, now));
        }
        assert!(!tickets.redeem(line.reveal(), ConnectionOwner::Unknown, now), "it could be read on a command line");
        assert!(tickets.redeem(file.reveal(), ConnectionOwner::Unknown, now), "only our user could read the file");
        assert!(tickets.redeem(line.reveal(), ConnectionOwner::Ours, now));
    }

    #[test]
    fn so_many_tickets_are_open_at_once_and_no_more() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let all: Vec<_> = (0..=TICKETS_MAX).map(|_| issued(&tickets, Delivery::CommandLine, now)).collect();
        assert!(!tickets.knows(all[0].reveal(), now));
        assert!(all[1..].iter().all(|ticket| tickets.redeem(ticket.reveal(), ConnectionOwner::Ours, now)));
    }
}
