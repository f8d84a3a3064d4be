//! Requests of several windows in a random order, with an agent that takes its time: whatever the order, no request is
//! lost, and a window that opened a session receives what the agent sends.

use std::collections::{HashMap, HashSet};

use protocol::{ClientMessage, ServerMessage, SessionId};
use sessions::WindowKind;
use tokio::sync::watch;

use crate::puppet::{Seat, Stage, open};

const ROUNDS: u64 = 60;
const STEPS: usize = 40;
/// For the next message to come. It takes milliseconds.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// xorshift: the same numbers for the same seed, on every machine.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// What one window was answered and sent, checked as it comes.
#[derive(Debug, Default)]
struct Ledger {
    /// Requests without an answer, by what they were.
    open: HashMap<String, &'static str>,
    asked: Vec<(String, &'static str)>,
    /// Items that came since the window last opened the session.
    items: HashSet<String>,
    has_history: bool,
    /// The number of the last message of the session.
    seq: u64,
}

impl Ledger {
    fn take(&mut self, frame: &protocol::ServerFrame, context: &str) {
        match &frame.message {
            ServerMessage::SessionUpsert { payload, seq, .. } => {
                let is_new = self.items.insert(payload.item_id.as_str().to_owned());
                assert!(is_new, "{context}: {payload:?} came twice");
                assert!(*seq > self.seq, "{context}: {seq} after {}", self.seq);
                self.seq = *seq;
            }
            ServerMessage::SessionTurn { seq, .. } => {
                assert!(*seq > self.seq, "{context}: {seq} after {}", self.seq);
                self.seq = *seq;
            }
            ServerMessage::SessionHistory { seq, entries, .. } => {
                assert!(*seq >= self.seq, "{context}: the numbers went back");
                self.seq = *seq;
                self.has_history = true;
                self.items.extend(entries.iter().map(|entry| entry.item_id.as_str().to_owned()));
            }
            _ => {}
        }
        if let Some(asked) = frame.request_id.as_ref().and_then(|id| self.open.remove(id))
            && asked == "open"
        {
            assert!(matches!(frame.message, ServerMessage::SessionHistory { .. }), "{context}: {frame:?}");
        }
    }
}

async fn read_until(seat: &mut Seat, ledger: &mut Ledger, context: &str, is_done: impl Fn(&Ledger) -> bool) {
    while !is_done(ledger) {
        let next = tokio::time::timeout(PATIENCE, seat.next_or_end()).await;
        let next = next.unwrap_or_else(|_| panic!("{context}: nothing came; {ledger:?}"));
        let Some(frame) = next else { panic!("{context}: the window was closed") };
        ledger.take(&frame, context);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_order_every_request_is_answered_and_every_open_is_followed_by_history_and_what_is_sent() {
    for seed in 1..=ROUNDS {
        let context = format!("seed {seed}");
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let stage = Stage::set().await;
        stage.puppet.answers();
        let mut seats: Vec<_> =
            [WindowKind::View, WindowKind::Plain, WindowKind::View].map(|kind| stage.seat_of(kind)).into();
        let session = stage.create(&mut seats[0]).await;
        let (loads, kills) = (stage.puppet.hold_loads(), stage.puppet.hold_kills());
        let gates = [loads, kills];
        for gate in &gates {
            gate.send_replace(chance.below(2) == 0);
        }
        let mut ledgers: Vec<_> = seats.iter().map(|_| Ledger::default()).collect();
        let mut others = tokio::task::JoinSet::new();
        for _ in 0..STEPS {
            let who = chance.below(seats.len());
            let (what, message) = step(&mut chance, &session);
            match message {
                Some(message) => {
                    let id = seats[who].ask(message).await;
                    ledgers[who].asked.push((id.clone(), what));
                    ledgers[who].open.insert(id, what);
                }
                None => disturb(&mut chance, &stage, &session, &gates, &mut others),
            }
            for _ in 0..chance.below(4) {
                tokio::task::yield_now().await;
            }
        }
        for gate in &gates {
            gate.send_replace(true);
        }
        for (seat, ledger) in seats.iter_mut().zip(&mut ledgers) {
            read_until(seat, ledger, &context, |ledger| ledger.open.is_empty()).await;
        }
        while others.join_next().await.is_some() {}
        // Now it is quiet. Whoever opens it gets all that comes.
        let id = seats[0].ask(ClientMessage::SessionRestore { session_id: session.clone() }).await;
        ledgers[0].open.insert(id, "restore");
        for (seat, ledger) in seats.iter_mut().zip(&mut ledgers) {
            ledger.has_history = false;
            let id = seat.ask(open(&session, None)).await;
            ledger.open.insert(id, "open");
            read_until(seat, ledger, &context, |ledger| ledger.open.is_empty() && ledger.has_history).await;
        }
        let items: Vec<_> = ledgers.iter().map(|ledger| ledger.items.len()).collect();
        stage.hub.send(&session, "the last".into()).await.unwrap();
        for ((seat, ledger), items) in seats.iter_mut().zip(&mut ledgers).zip(items) {
            read_until(seat, ledger, &context, |ledger| ledger.items.len() > items).await;
        }
        assert_eq!(stage.puppet.overlaps(), 0, "{context}: a session was loaded while its agent was being ended");
    }
}

fn step(chance: &mut Chance, session: &SessionId) -> (&'static str, Option<ClientMessage>) {
    let session_id = session.clone();
    match chance.below(12) {
        0 | 1 => ("archive", Some(ClientMessage::SessionArchive { session_id })),
        2 | 3 => ("restore", Some(ClientMessage::SessionRestore { session_id })),
        4..=6 => ("open", Some(open(session, None))),
        7 => ("send", Some(ClientMessage::SessionSend { session_id, content: "hello".into() })),
        8 => ("leave", Some(ClientMessage::SessionLeave { session_id })),
        9 => ("cancel", Some(ClientMessage::SessionCancel { session_id })),
        _ => ("", None),
    }
}

/// Something that is not asked by a window.
fn disturb(
    chance: &mut Chance,
    stage: &Stage,
    session: &SessionId,
    gates: &[watch::Sender<bool>],
    others: &mut tokio::task::JoinSet<()>,
) {
    match chance.below(4) {
        0 => {
            let (hub, id) = (stage.hub.clone(), session.clone());
            others.spawn(async move { hub.load_session(&id).await.map(drop).unwrap_or_default() });
        }
        _ => {
            gates[chance.below(gates.len())].send_replace(chance.below(2) == 0);
        }
    }
}
