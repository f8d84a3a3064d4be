//! When the loss of an agent is reported: at once, whatever else has to be waited for, and in an order that makes
//! sense.

use std::time::{Duration, Instant};

use agent_process::{AgentCommand, StopLadder};
use protocol::AgentStatus;
use providers::acp::{AcpProvider, AcpSettings};
use providers::{Provider, ProviderError};
use testkit::programs;

use crate::acp_bench::{Bench, agent, is_running, kill, until};
use crate::acp_faults::sleepers;
use crate::listener::soon;

/// So long that who waits for it is found out.
const SLOW: StopLadder = StopLadder { grace_eof: Duration::ZERO, grace_term: Duration::from_secs(8) };

/// An agent that takes its time to go, started by a line of shell.
fn slow_bench(manner: &str) -> Bench {
    let bench = Bench::new(&[]);
    let program = programs::scripted_agent();
    let mut slow = agent(bench.state.path(), &[]);
    slow.command = AgentCommand::new("/bin/sh")
        .args(["-c", manner])
        .arg(program)
        .env("SCRIPTED_AGENT_STATE", bench.state.path())
        .orphan_ladder(SLOW)
        .guardian(program);
    let provider = AcpProvider::new(slow, AcpSettings { stop: SLOW, ..AcpSettings::default() });
    Bench { provider, ..bench }
}

#[tokio::test]
async fn a_crash_is_reported_before_what_the_agent_started_is_gone() {
    let bench = slow_bench("exec \"$0\" acp");
    let mut session = bench.create().await;
    let turn = bench.send(&session, "stubborn-daemon\nsay:words\nhold:never").await;
    session.until("the text", |session| session.text().contains("words")).await;
    let pid = bench.pid().await;
    until("the daemon", || !sleepers(pid).is_empty()).await;
    let daemons = sleepers(pid);
    kill(pid);
    session.until_end_of(&turn).await;
    session.until("the next try", |session| session.statuses.last() == Some(&AgentStatus::Reconnecting)).await;
    assert!(daemons.iter().any(|daemon| is_running(*daemon)), "it was waited for");
    assert_eq!(bench.count("start"), 1);
    // The next process comes when the last one is gone with all that was its own.
    session.until("the connection", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    assert!(!daemons.iter().any(|daemon| is_running(*daemon)));
    soon("the end", bench.provider.shutdown()).await;
}

#[tokio::test]
async fn an_agent_that_closes_its_output_and_does_not_exit_is_reported_as_lost_while_it_runs() {
    let bench = slow_bench("trap '' TERM; exec 3<&0; \"$0\" acp <&3 3<&- & exec >&- 3<&-; sleep 1000");
    let mut session = bench.create().await;
    let pid = bench.pid().await;
    let turn = bench.turn(&mut session, "say:words\nclose\ndeaf:never").await;
    assert_eq!(session.error_of(&turn).unwrap().0, "PROCESS_CRASH");
    assert!(is_running(pid), "its end was waited for");
    soon("the end", bench.provider.shutdown()).await;
    assert!(!is_running(pid));
}

#[tokio::test]
async fn a_restart_that_fails_is_not_reported_as_another_loss() {
    let bench = Bench::new(&[]);
    let program = programs::scripted_agent();
    let broken = bench.state.path().join("broken");
    let mut fragile = agent(bench.state.path(), &[]);
    fragile.command = AgentCommand::new("/bin/sh")
        .args(["-c", "if [ -e \"$1\" ]; then rm \"$1\"; echo not now >&2; exit 5; fi; exec \"$0\" acp"])
        .arg(program)
        .arg(&broken)
        .env("SCRIPTED_AGENT_STATE", bench.state.path())
        .guardian(program);
    let bench = Bench { provider: AcpProvider::new(fragile, AcpSettings::default()), ..bench };
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    std::fs::write(&broken, "").unwrap();
    bench.kill().await;
    session
        .until("the connection", |session| {
            session.statuses.contains(&AgentStatus::Reconnecting)
                && session.statuses.last() == Some(&AgentStatus::Connected)
        })
        .await;
    assert!(!broken.exists(), "the first restart failed");
    let since_loss = session.statuses.iter().skip_while(|status| **status != AgentStatus::Disconnected);
    let mut sequence: Vec<AgentStatus> = since_loss.copied().collect();
    sequence.dedup();
    assert_eq!(sequence, [AgentStatus::Disconnected, AgentStatus::Reconnecting, AgentStatus::Connected]);
}

/// A measurement, not a test: from the cause to the report that the user sees. Run alone, it prints milliseconds.
#[tokio::test]
#[ignore = "a measurement: cargo test -p providers -- --ignored --nocapture how_soon"]
async fn how_soon_each_failure_is_reported() {
    for (failure, args) in [
        ("dies before the handshake", "refuse:bad flag"),
        ("dies in the handshake", "die"),
        ("refuses the handshake", "reject:no"),
    ] {
        let bench = Bench::new(&[args]);
        let begun = Instant::now();
        let refused = soon("an answer", bench.provider.create_session(bench.new_session())).await;
        println!("{:6} ms  {failure}", begun.elapsed().as_millis());
        assert!(matches!(refused, Err(ProviderError::Handshake { .. })));
    }
    // The cause is the last thing the script does, so the clock starts when it is seen to be there.
    for (failure, script) in [
        ("exits in a turn", "hold:go\nexit:3"),
        ("closes its output in a turn and stays", "hold:go\nclose\ndeaf:never"),
        ("exits in a turn, leaves a daemon that ignores SIGTERM", "stubborn-daemon\nhold:go\nexit:3"),
        ("floods 200,000 lines and exits", "hold:go\nflood:200000\nexit:3"),
        ("writes a line over the limit", "hold:go\nhuge:70000000"),
        ("writes 10,000 lines of garbage", "hold:go\ngarbage:10000"),
    ] {
        let bench = Bench::new(&[]);
        let mut session = bench.create().await;
        let turn = bench.send(&session, script).await;
        bench.until_logged("hold go").await;
        let begun = Instant::now();
        bench.release("go");
        session.until_end_of(&turn).await;
        println!("{:6} ms  {failure}", begun.elapsed().as_millis());
    }
    for (failure, in_turn) in [("killed in a turn", true), ("killed between turns", false)] {
        let bench = Bench::new(&[]);
        let mut session = bench.create().await;
        if in_turn {
            bench.send(&session, "say:words\nhold:never").await;
            session.until("the text", |session| session.text().contains("words")).await;
        }
        session.until("the state", |session| session.statuses.contains(&AgentStatus::Connected)).await;
        let begun = Instant::now();
        bench.kill().await;
        session.until("the loss", |session| session.statuses.contains(&AgentStatus::Disconnected)).await;
        println!("{:6} ms  {failure}", begun.elapsed().as_millis());
    }
}
