//! `kill -9` of the server at random moments, under load: what was confirmed is in the journal afterwards.
//!
//! A round starts the server over the same data, lets pages that were open join again, has sessions stream and be sent
//! messages, and kills the server. Then a copy of the journal is compared with what the pages were sent.
//! Kept out: how the journal stores it. It is read through its crate, as the server reads it.

mod conversation;
mod stored;

use std::time::{Duration, Instant};

use protocol::SessionId;
use rustix::process::Signal;
use tokio::task::JoinSet;

use self::conversation::{Conversation, SendBy};
use self::stored::Stored;
use crate::{TestSetup, programs};

/// The sessions of a round. The conversations of one grow over many rounds.
const SESSIONS: [SendBy; 4] = [SendBy::Window, SendBy::Window, SendBy::Http, SendBy::Window];
/// After so many rounds, the next ones are with new sessions, so that a long run does not only read old text.
const ROUNDS_PER_SESSION: usize = 50;
/// The server is killed at most so long after the load began.
const LOAD_MS_MAX: u64 = 900;

/// What is to happen.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub kills: usize,
    /// Text that a page had for longer than this when the server was killed must be there.
    pub missing_max: Duration,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub kills: usize,
    pub messages_sent: usize,
    pub messages_confirmed: usize,
    pub turn_ends_received: usize,
    pub items_stored: u64,
    /// Pages that were open over the restart: how many got what they missed, and how many a snapshot.
    pub joined_since: usize,
    pub joined_by_snapshot: usize,
    /// Sessions in which text was missing that a page had been sent.
    pub cut_texts: usize,
    /// For how long a page had had text that was missing, at most.
    pub missing_ms_max: u128,
}

/// # Panics
/// When something that was confirmed is missing, or the journal is not whole.
pub async fn kill_under_load(plan: Plan) -> Report {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut report = Report::default();
    let mut setup = TestSetup::start().await;
    let mut conversations: Vec<Conversation> = Vec::new();
    let mut stored: Option<Stored> = None;
    for round in 0..plan.kills {
        if round % ROUNDS_PER_SESSION == 0 {
            conversations.clear();
            for by in SESSIONS {
                conversations.push(Conversation::begin(&setup, by, random.u64(..)).await);
            }
        } else {
            for conversation in &mut conversations {
                let found = stored.as_ref().and_then(|stored| stored.session(conversation.session()));
                conversation.join_again(&setup, found, &mut report).await;
            }
        }
        let mut load = JoinSet::new();
        for (number, conversation) in conversations.drain(..).enumerate() {
            load.spawn(async move { (number, conversation.run(round).await) });
        }
        // Every fourth time in the first moments, where the sessions are being taken over.
        let limit = if round % 4 == 0 { LOAD_MS_MAX / 8 } else { LOAD_MS_MAX };
        tokio::time::sleep(Duration::from_micros(random.u64(0..limit * 1000))).await;
        let killed_at = Instant::now();
        setup.app.signal(Signal::KILL);
        setup.app.ended().await;
        let mut ended = load.join_all().await;
        ended.sort_by_key(|(number, _)| *number);
        conversations.extend(ended.into_iter().map(|(_, conversation)| conversation));
        let sessions: Vec<SessionId> = conversations.iter().map(|one| one.session().clone()).collect();
        let now = Stored::read(&setup.app.data_dir(), &sessions, round).await;
        for conversation in &mut conversations {
            let found = now.session(conversation.session());
            conversation.compare(found, killed_at, plan.missing_max, &mut report);
        }
        report.items_stored = now.items;
        report.kills += 1;
        if report.kills.is_multiple_of(ROUNDS_PER_SESSION) {
            println!("{report:?}");
        }
        stored = Some(now);
        // Every third server has an agent that replays its history, which is compared and must add nothing twice.
        let agent = programs::scripted_agent().display();
        let args = if round % 3 == 2 { "no-resume" } else { "" };
        setup = setup.again_with(|builder| builder.env("CODEX_ACP_CMD", format!("'{agent}' acp {args}"))).await;
    }
    report
}
