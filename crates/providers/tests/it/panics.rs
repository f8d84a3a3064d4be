//! A panic of ours in one session or at one agent: it is reported, nothing is left behind, everything else goes on.
//!
//! A log subscriber panics once, at the message of one place in the code.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::{AgentStatus, UpsertStatus};
use providers::Provider;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber, span};

use crate::acp_bench::{Bench, is_running, until};
use crate::claude_faults;
use crate::listener::{Listener, soon};

/// Panics once, in the thread of the test, where this message is logged.
struct Trap {
    message: &'static str,
    sprung: AtomicBool,
}

/// The trap is there as long as this.
fn trap(message: &'static str) -> DefaultGuard {
    tracing::subscriber::set_default(Trap { message, sprung: AtomicBool::new(false) })
}

impl Subscriber for Trap {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut found = Found { message: self.message, is_found: false };
        event.record(&mut found);
        let springs = found.is_found && !self.sprung.swap(true, Ordering::Relaxed);
        assert!(!springs, "the trap at {:?}", self.message);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Found {
    message: &'static str,
    is_found: bool,
}

impl Visit for Found {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.is_found |= field.name() == "message" && format!("{value:?}") == self.message;
    }
}

/// What everyone may see of a session whose task broke in a turn.
fn assert_settled(session: &Listener, turn: &protocol::TurnId) {
    let (code, message) = session.error_of(turn).unwrap();
    assert_eq!((code.as_str(), message.as_str()), ("INTERNAL_ERROR", "Unexpected server error."));
    assert!(session.items.iter().all(|item| item.status.is_final()), "{session:#?}");
    assert!(session.items.iter().any(|item| item.status == UpsertStatus::Complete));
    assert_eq!(session.statuses.last(), Some(&AgentStatus::Disconnected));
}

#[tokio::test]
async fn a_panic_in_a_session_of_claude_code_ends_its_turn_and_its_process_and_it_can_be_opened_again() {
    let bench = claude_faults::Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let mut other = bench.create(&provider).await.unwrap();
    let turn = {
        let _trap = trap("Claude Code wrote a line that cannot be read");
        let turn = session.send("pid\ngarbage\nstall").await.unwrap();
        session.until("the end of the channel", |session| session.closed).await;
        turn
    };
    assert_settled(&session, &turn);
    let pid = session.answers(&turn).concat().parse().unwrap();
    until("its process to be gone", || !is_running(pid)).await;

    let stored = claude_faults::stored(&session.agent_id, bench.project_dir());
    let mut again = Listener::new(soon("the session", provider.load_session(stored)).await.unwrap().opened);
    let turn = soon("the turn", again.send("say:again")).await.unwrap();
    again.until_end_of(&turn).await;
    assert_eq!(again.answers(&turn), ["again"]);
    let turn = other.send("say:here").await.unwrap();
    other.until_end_of(&turn).await;
    assert_eq!(other.answers(&turn), ["here"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_panic_in_a_session_of_an_acp_agent_ends_its_turn_and_it_can_be_opened_again() {
    let bench = Bench::new(&[]);
    let (mut session, mut other) = (bench.create().await, bench.create().await);
    let turn = {
        let _trap = trap("update passed over");
        let turn = bench.send(&session, "say:words\nstrange\nhold:never").await;
        session.until("the end of the channel", |session| session.closed).await;
        turn
    };
    assert_settled(&session, &turn);
    assert_eq!(session.answers(&turn), ["words"]);
    bench.until_logged(&format!("session/cancel {}", session.agent_id)).await;
    bench.until_logged(&format!("session/close {}", session.agent_id)).await;
    let loaded =
        soon("the session", bench.provider.load_session(bench.stored_session(&session.agent_id))).await.unwrap();
    let mut again = Listener::new(loaded.opened);
    let turn = bench.turn(&mut again, "say:again").await;
    assert_eq!(again.answers(&turn), ["again"]);
    let turn = bench.turn(&mut other, "say:here").await;
    assert_eq!(other.answers(&turn), ["here"]);
    assert_eq!(bench.count("start"), 1);
}

/// The place, and what the agent does to bring us there.
async fn breaks_and_comes_back(message: &'static str, act: &str, code: &str) {
    let bench = Bench::new(&[]);
    let (mut session, mut other) = (bench.create().await, bench.create().await);
    bench.turn(&mut other, "say:before").await;
    let pid = bench.pid().await;
    let turn = {
        let _trap = trap(message);
        let turn = bench.send(&session, &format!("say:words\n{act}\nhold:never")).await;
        session.until_end_of(&turn).await;
        session
            .until("the connection", |session| {
                session.statuses.contains(&AgentStatus::Reconnecting)
                    && session.statuses.last() == Some(&AgentStatus::Connected)
            })
            .await;
        turn
    };
    assert_eq!(session.error_of(&turn).unwrap().0, code, "{session:#?}");
    assert_eq!(session.answers(&turn), ["words"]);
    until("the process to be gone", || !is_running(pid)).await;
    for session in [&mut session, &mut other] {
        let turn = bench.turn(session, "say:after").await;
        assert_eq!(session.answers(&turn), ["after"]);
    }
    soon("the end", bench.provider.shutdown()).await;
}

#[tokio::test]
async fn a_panic_where_an_agents_lines_are_read_is_the_loss_of_that_agent_and_it_comes_back() {
    breaks_and_comes_back("notification passed over", "strange", "PROCESS_CRASH").await;
}

#[tokio::test]
async fn a_panic_in_the_supervisor_of_an_agent_leaves_nobody_waiting_and_the_agent_comes_back() {
    breaks_and_comes_back("agent lost", "exit:3", "PROCESS_CRASH").await;
}
