//! ACP agents that fail, each in its own way: it is reported, what was received stays, everything else goes on.

use std::time::Duration;

use agent_process::AgentCommand;
use protocol::{AgentStatus, Continuity, UpsertStatus};
use providers::acp::{AcpProvider, AcpSettings};
use providers::{Provider, ProviderError};
use testkit::programs;

use crate::acp_bench::{Bench, agent, is_running, kill, until};
use crate::listener::soon;

/// TC-5.5a.
#[tokio::test]
async fn a_program_that_is_not_there_is_named_with_how_to_install_it() {
    let bench = Bench::new(&[]);
    let mut missing = agent(bench.state.path(), &[]);
    missing.command = AgentCommand::new("no-such-agent").guardian(programs::scripted_agent());
    let provider = AcpProvider::new(missing, AcpSettings::default());
    let info = provider.describe().await;
    assert!(!info.installed && info.install_hint.is_some());
    let error = soon("an answer", provider.create_session(bench.new_session())).await.unwrap_err();
    assert!(matches!(error, ProviderError::NotInstalled { .. }), "{error:?}");
    let message = error.to_message();
    assert_eq!(message.message, "Could not start Scripted. Check that it's installed.");
    assert_eq!(message.install_hint.as_deref(), Some("cargo build -p testkit"));
    assert_eq!(provider.watch_status().borrow().status, AgentStatus::Disconnected);
}

/// TC-5.5b.
#[tokio::test]
async fn a_handshake_that_fails_is_reported_with_the_agents_stderr() {
    let check = async |args: &[&str], expected: &str| {
        let bench = Bench::new(args);
        let error = soon("an answer", bench.provider.create_session(bench.new_session())).await.unwrap_err();
        let ProviderError::Handshake { detail, .. } = &error else { panic!("{args:?}: {error:?}") };
        assert!(detail.contains(expected), "{args:?}: {detail}");
        assert_eq!(error.to_message().message, "Could not connect to Scripted");
        // A retry is a new start, and nothing is left of the first.
        soon("an answer", bench.provider.create_session(bench.new_session())).await.unwrap_err();
        assert_eq!(bench.count("start"), 2);
        for line in bench.log() {
            if let Some(pid) = line.strip_prefix("start ") {
                let pid = pid.parse().unwrap();
                until("the process to be gone", || !is_running(pid)).await;
            }
        }
    };
    check(&["refuse:bad flag --x"], "exit code 1: bad flag --x").await;
    check(&["die"], "exit code 3: it was not to be").await;
    check(&["reject:not today"], "not today").await;
    check(&["version:7"], "version 7").await;
}

#[tokio::test]
async fn an_agent_that_never_answers_the_handshake_is_given_up() {
    let bench = Bench::new(&[]);
    let settings = AcpSettings { start_timeout: Duration::from_millis(300), ..AcpSettings::default() };
    let provider = AcpProvider::new(agent(bench.state.path(), &["silent"]), settings);
    let error = soon("an answer", provider.create_session(bench.new_session())).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Handshake { detail, .. } if detail.contains("no answer")), "{error:?}");
}

/// TC-5.2b, TC-5.2c.
#[tokio::test]
async fn a_crash_in_a_turn_settles_it_and_the_session_is_resumed_before_connected_is_reported() {
    let bench = Bench::new(&[]);
    let (mut session, mut other) = (bench.create().await, bench.create().await);
    bench.turn(&mut other, "say:before").await;
    let turn = bench.send(&session, "say:partial\ncall:c1 make\nhold:never").await;
    session.until("the call", |session| session.items.len() == 3).await;
    let first = bench.kill().await;
    session.until_end_of(&turn).await;
    assert_eq!(session.error_of(&turn), Some(("PROCESS_CRASH".into(), "Scripted stopped unexpectedly".into())));
    assert_eq!(session.answers(&turn), ["partial"]);
    assert!(session.items.iter().all(|item| matches!(item.status, UpsertStatus::Complete | UpsertStatus::Error)));
    session.until("the loss", |session| session.statuses.contains(&AgentStatus::Disconnected)).await;
    session.until("the restart", |session| session.statuses.contains(&AgentStatus::Reconnecting)).await;
    session.until("the connection", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    assert_eq!(session.continuity.last(), Some(&Continuity::Resumed));
    // It was resumed before "connected" was reported.
    assert_eq!(bench.count("session/resume"), 2);
    assert_ne!(bench.pid().await, first);
    for session in [&mut session, &mut other] {
        let turn = bench.turn(session, "say:after").await;
        assert_eq!(session.answers(&turn), ["after"]);
    }
    assert_eq!(bench.count("start"), 2);
}

#[tokio::test]
async fn a_crash_between_turns_is_reported_and_messages_are_refused_until_it_is_back() {
    let bench = Bench::new(&["no-resume"]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    bench.kill().await;
    session.until("the loss", |session| session.statuses.contains(&AgentStatus::Reconnecting)).await;
    let refused = soon("an answer", session.send("say:x")).await.unwrap_err();
    assert!(matches!(refused, ProviderError::Unavailable { .. }), "{refused:?}");
    assert_eq!(refused.to_message().message, "Connection to Scripted lost. Reconnecting...");
    assert!(!session.session.is_alive());
    session.until("the connection", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    // Without resume it is loaded; what that replays is not news.
    assert_eq!(bench.count("session/load"), 1);
    assert_eq!(session.items.len(), 2);
    let turn = bench.turn(&mut session, "say:after").await;
    assert_eq!(session.answers(&turn), ["after"]);
}

#[tokio::test]
async fn an_agent_that_cannot_resume_a_session_is_not_shown_as_if_it_remembered() {
    let bench = Bench::new(&["no-resume", "no-load"]);
    let mut session = bench.create().await;
    let old = session.agent_id.clone();
    bench.turn(&mut session, "say:before").await;
    bench.kill().await;
    session
        .until("the connection", |session| {
            session.statuses.last() == Some(&AgentStatus::Connected) && session.statuses.len() > 2
        })
        .await;
    assert_eq!(session.continuity.last(), Some(&Continuity::Copy));
    // The user goes on in another session of the agent's.
    let turn = bench.turn(&mut session, "say:on").await;
    assert_eq!(session.answers(&turn), ["on"]);
    assert_ne!(session.agent_id, old);
    bench.kill().await;
    session.until("its continuity", |session| session.continuity.len() == 3).await;
    assert_eq!(session.continuity, [Continuity::Live, Continuity::Copy, Continuity::Copy]);
}

#[tokio::test]
async fn a_session_without_a_message_goes_on_under_a_new_id_after_a_crash() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let old = session.agent_id.clone();
    bench.kill().await;
    session.until("a new id", |session| session.agent_id != old).await;
    session.until("the connection", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    let turn = bench.turn(&mut session, "say:hello").await;
    assert_eq!(session.answers(&turn), ["hello"]);
    assert!(session.session.is_alive());
}

/// The message is in the pipe, and the agent dies before it has read it: it does not know of the session.
#[tokio::test]
async fn a_session_whose_first_message_was_lost_with_the_agent_goes_on_under_a_new_id() {
    for args in [&[][..], &["no-resume"][..], &["no-load"][..]] {
        let bench = Bench::new(args);
        let mut session = bench.create().await;
        let old = session.agent_id.clone();
        let pid = bench.pid().await;
        let stopped = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(stopped, rustix::process::Signal::STOP).unwrap();
        let turn = bench.send(&session, "say:never").await;
        kill(pid);
        session.until_end_of(&turn).await;
        assert_eq!(session.error_of(&turn).unwrap().0, "PROCESS_CRASH");
        session.until("a new id", |session| session.agent_id != old).await;
        session.until("the connection", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
        let turn = bench.turn(&mut session, "say:hello").await;
        assert_eq!(session.answers(&turn), ["hello"], "{args:?}");
        assert_eq!(session.continuity.last(), Some(&Continuity::Live));
    }
}

/// Some agents write a session down with its first answer.
#[tokio::test]
async fn a_session_whose_first_message_was_cancelled_before_any_output_goes_on_under_a_new_id() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let old = session.agent_id.clone();
    let turn = bench.send(&session, "hold:never").await;
    bench.until_logged("hold never").await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    std::fs::remove_file(bench.state.path().join(format!("session-{old}"))).unwrap();
    bench.kill().await;
    session.until("a new id", |session| session.agent_id != old).await;
    session.until("the connection", |session| session.statuses.last() == Some(&AgentStatus::Connected)).await;
    let turn = bench.turn(&mut session, "say:hello").await;
    assert_eq!(session.answers(&turn), ["hello"]);
}

/// TC-5.2d.
#[tokio::test]
async fn a_requested_restart_starts_a_new_process_at_once() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    let turn = bench.send(&session, "say:words\nhold:never").await;
    session.until("the text", |session| session.text().contains("words")).await;
    let first = bench.pid().await;
    soon("the restart", bench.provider.reconnect()).await.unwrap();
    assert_ne!(bench.pid().await, first);
    assert!(!is_running(first));
    session.until_end_of(&turn).await;
    assert_eq!(session.error_of(&turn).unwrap().1, "Scripted was restarted");
    let turn = bench.turn(&mut session, "say:after").await;
    assert_eq!(session.answers(&turn), ["after"]);
}

/// Whoever presses Retry again and again must not end each time what the last time has started.
#[tokio::test]
async fn a_requested_restart_joins_the_start_that_is_under_way_or_has_just_ended() {
    for args in [&["no-close"][..], &[][..]] {
        let bench = Bench::new(args);
        let mut session = bench.create().await;
        bench.turn(&mut session, "say:before").await;
        bench.kill().await;
        session.until("the loss", |session| session.statuses.contains(&AgentStatus::Reconnecting)).await;
        let retry = || session.session.reconnect();
        let (first, second, third) = soon("the restart", async { tokio::join!(retry(), retry(), retry()) }).await;
        assert!(first.is_ok() && second.is_ok() && third.is_ok(), "{first:?} {second:?} {third:?}");
        soon("one more", retry()).await.unwrap();
        let turn = bench.turn(&mut session, "say:after").await;
        assert_eq!(session.answers(&turn), ["after"]);
        assert_eq!(bench.count("start"), 2, "{args:?}");
    }
}

#[tokio::test]
async fn a_session_that_is_not_resumed_keeps_no_other_waiting_and_reports_that_itself() {
    let settings = AcpSettings { resume_within: Duration::from_millis(100), ..AcpSettings::default() };
    let bench = Bench::with(&["slow-resume"], settings);
    let (mut hanging, mut other) = (bench.create().await, bench.create().await);
    bench.turn(&mut hanging, "say:before").await;
    bench.turn(&mut other, "say:before").await;
    bench.release(&format!("resume-{}", other.agent_id));
    bench.kill().await;
    let is_back = |session: &crate::listener::Listener| {
        session.statuses.contains(&AgentStatus::Disconnected)
            && session.statuses.last() == Some(&AgentStatus::Connected)
    };
    other.until("the connection", is_back).await;
    let turn = bench.turn(&mut other, "say:after").await;
    assert_eq!(other.answers(&turn), ["after"]);
    hanging
        .until("word of it", |session| {
            session.details.last().is_some_and(|detail| detail.contains("has not resumed this session yet"))
        })
        .await;
    assert_eq!(hanging.statuses.last(), Some(&AgentStatus::Reconnecting));
    bench.release(&format!("resume-{}", hanging.agent_id));
    hanging.until("the connection", is_back).await;
    let turn = bench.turn(&mut hanging, "say:after all").await;
    assert_eq!(hanging.answers(&turn), ["after all"]);
}

#[tokio::test]
async fn one_hanging_session_is_reattached_without_touching_the_others() {
    let bench = Bench::new(&[]);
    let (mut hanging, mut other) = (bench.create().await, bench.create().await);
    let turn = bench.send(&hanging, "say:words\ndeaf:never").await;
    hanging.until("the text", |session| session.text().contains("words")).await;
    let others = bench.send(&other, "say:one\nhold:go\nsay:two").await;
    soon("the renewal", hanging.session.reconnect()).await.unwrap();
    hanging.until_end_of(&turn).await;
    let turn = bench.turn(&mut hanging, "say:after").await;
    assert_eq!(hanging.answers(&turn), ["after"]);
    bench.release("go");
    other.until_end_of(&others).await;
    assert_eq!(other.answers(&others), ["onetwo"]);
    assert_eq!(bench.count("start"), 1);
}

#[tokio::test]
async fn a_restart_for_one_session_of_an_agent_that_hangs_as_a_whole_starts_a_new_process() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    let turn = bench.send(&session, "say:words\nhold:never").await;
    session.until("the text", |session| session.text().contains("words")).await;
    let pid = bench.pid().await;
    let stopped = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(stopped, rustix::process::Signal::STOP).unwrap();
    soon("the restart", session.session.reconnect()).await.unwrap();
    assert_ne!(bench.pid().await, pid);
    assert!(!is_running(pid));
    session.until_end_of(&turn).await;
    let turn = bench.turn(&mut session, "say:after").await;
    assert_eq!(session.answers(&turn), ["after"]);
}

#[tokio::test]
async fn an_agent_that_exits_with_nothing_open_is_not_missed() {
    let bench = Bench::new(&[]);
    let session = bench.create().await;
    soon("the end", session.session.close()).await.unwrap();
    let pid = bench.kill().await;
    let mut status = bench.provider.watch_status();
    soon("the loss", status.wait_for(|report| report.status == AgentStatus::Disconnected)).await.unwrap();
    assert!(!is_running(pid));
    // The next session starts it again.
    bench.create().await;
    assert_eq!(bench.count("start"), 2);
}

#[tokio::test]
async fn garbage_between_the_lines_is_skipped() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "say:one\ngarbage:10000\nsay:two").await;
    assert_eq!(session.answers(&turn), ["onetwo"]);
}

#[tokio::test]
async fn a_line_of_60_mb_is_read_and_one_beyond_the_limit_is_named() {
    let bench = Bench::new(&[]);
    let (mut session, mut other) = (bench.create().await, bench.create().await);
    let turn = bench.turn(&mut session, "huge:60000000").await;
    assert_eq!(session.answers(&turn)[0].len(), 60_000_000);
    let turn = bench.turn(&mut session, "say:one\nhuge:70000000\nsay:two").await;
    assert_eq!(session.answers(&turn).concat(), "onetwo");
    assert!(session.text().contains("Some output of the agent was left out"), "{session:?}");
    let turn = bench.turn(&mut other, "say:alive").await;
    assert_eq!(other.answers(&turn), ["alive"]);
}

#[tokio::test]
async fn a_flood_keeps_its_order_and_loses_nothing() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "say:begin \nflood:200000\nsay:end").await;
    let text = session.answers(&turn).concat();
    assert_eq!(text.len(), "begin ".len() + 200_000 * 9 + "end".len());
    assert!(text.starts_with("begin 12345678 ") && text.ends_with(" end"));
}

#[tokio::test]
async fn a_flood_without_end_costs_bounded_memory_and_ends_as_an_error() {
    let bench = Bench::new(&[]);
    let (mut session, mut other) = (bench.create().await, bench.create().await);
    let before = resident_mib();
    let turn = bench.turn(&mut session, "big-flood:1024").await;
    assert_eq!(session.error_of(&turn).unwrap().0, "AGENT_PROTOCOL_ERROR");
    let grown = resident_mib().saturating_sub(before);
    assert!(grown < 900, "{grown} MiB for 1 GiB of output");
    // As the hub does: it cancels such a turn, and drops the rest of it.
    soon("the cancel", session.session.cancel()).await.unwrap();
    tokio::select! {
        turn = bench.turn(&mut other, "say:alive") => assert_eq!(other.answers(&turn), ["alive"]),
        () = session.until("the end of the channel", |session| session.closed) => panic!("it was closed"),
    }
}

#[tokio::test]
async fn a_line_that_never_ends_leaves_the_turn_silent_and_the_user_free_to_restart() {
    let settings = AcpSettings { silence_after: Duration::from_millis(50), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "say:words\nunended\nhold:never").await;
    session.until("silence", |session| session.facts.silent_ms.is_some_and(|ms| ms > 0)).await;
    soon("the restart", bench.provider.reconnect()).await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["words"]);
    let turn = bench.turn(&mut session, "say:after").await;
    assert_eq!(session.answers(&turn), ["after"]);
}

#[tokio::test]
async fn an_agent_that_closes_its_output_is_lost_and_ended() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let pid = bench.pid().await;
    let turn = bench.turn(&mut session, "say:words\nclose\nhold:never").await;
    assert_eq!(session.error_of(&turn).unwrap().0, "PROCESS_CRASH");
    until("the process to be gone", || !is_running(pid)).await;
    session
        .until("the connection", |session| {
            session.statuses.last() == Some(&AgentStatus::Connected) && session.turns.len() == 2
        })
        .await;
}

#[tokio::test]
async fn an_agent_that_closes_its_input_is_lost_and_ended_with_the_next_message_to_it() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let pid = bench.pid().await;
    bench.turn(&mut session, "say:words\nclose-input").await;
    let input = std::path::PathBuf::from(format!("/proc/{pid}/fd/0"));
    until("its input to be closed", || std::fs::read_link(&input).is_ok_and(|file| file.ends_with("null"))).await;
    let turn = bench.turn(&mut session, "say:never").await;
    assert_eq!(session.error_of(&turn).unwrap().0, "PROCESS_CRASH");
    until("the process to be gone", || !is_running(pid)).await;
    session
        .until("the connection", |session| {
            session.statuses.contains(&AgentStatus::Reconnecting)
                && session.statuses.last() == Some(&AgentStatus::Connected)
        })
        .await;
    let turn = bench.turn(&mut session, "say:after").await;
    assert_eq!(session.answers(&turn), ["after"]);
}

/// The last idle session to be evicted finds that nothing can be sent to the agent any more.
#[tokio::test]
async fn a_session_that_cannot_be_closed_when_idle_still_reports_its_agents_state() {
    let settings = AcpSettings { idle: Some(Duration::from_millis(200)), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings);
    let (mut first, mut last) = (bench.create().await, bench.create().await);
    let turn = bench.send(&last, "say:words\nhold:go").await;
    last.until("the text", |session| session.text().contains("words")).await;
    bench.turn(&mut first, "say:words\nclose-input").await;
    first.until("its rest", |session| session.continuity.last() == Some(&Continuity::Dormant)).await;
    bench.release("go");
    last.until_end_of(&turn).await;
    for session in [&mut first, &mut last] {
        session
            .until("the connection", |session| {
                session.statuses.contains(&AgentStatus::Reconnecting)
                    && session.statuses.last() == Some(&AgentStatus::Connected)
            })
            .await;
        let turn = bench.turn(session, "say:after").await;
        assert_eq!(session.answers(&turn), ["after"]);
    }
}

#[tokio::test]
async fn what_an_agent_writes_last_is_shown_before_its_end() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "flood:5000\nsay:last words\nexit:7").await;
    assert!(session.answers(&turn)[0].ends_with("last words"));
    assert_eq!(session.error_of(&turn).unwrap().0, "PROCESS_CRASH");
}

#[tokio::test]
async fn a_daemon_of_the_agent_does_not_outlive_it() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let pid = bench.pid().await;
    let turn = bench.turn(&mut session, "daemon").await;
    assert_eq!(session.answers(&turn), ["daemon started"]);
    until("the daemon", || !sleepers(pid).is_empty()).await;
    let daemons = sleepers(pid);
    soon("the end", bench.provider.shutdown()).await;
    assert!(daemons.iter().all(|pid| !is_running(*pid)));
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_ended_all_the_same() {
    let bench = Bench::new(&[]);
    let mut stubborn = agent(bench.state.path(), &["acp"]);
    let program = programs::scripted_agent();
    stubborn.command = AgentCommand::new("/bin/sh")
        .args(["-c", "trap '' TERM; exec \"$0\" acp"])
        .arg(program)
        .env("SCRIPTED_AGENT_STATE", bench.state.path())
        .guardian(program);
    let settings = AcpSettings {
        stop: agent_process::StopLadder { grace_eof: Duration::ZERO, grace_term: Duration::from_millis(100) },
        ..AcpSettings::default()
    };
    let provider = AcpProvider::new(stubborn, settings);
    let session = soon("the session", provider.create_session(bench.new_session())).await.unwrap();
    let pid = provider.process_id().await.unwrap();
    soon("the end", provider.shutdown()).await;
    assert!(!is_running(pid));
    drop(session);
}

#[tokio::test]
async fn an_agent_that_stops_reading_keeps_nobody_waiting() {
    let settings = AcpSettings { silence_after: Duration::from_millis(50), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings);
    let mut session = bench.create().await;
    let pid = bench.pid().await;
    let stopped = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(stopped, rustix::process::Signal::STOP).unwrap();
    let text = format!("say:{}", "x".repeat(900_000));
    bench.send(&session, &text).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until("silence", |session| session.facts.silent_ms.is_some_and(|ms| ms > 0)).await;
    kill(pid);
    session
        .until("the connection", |session| {
            session.statuses.contains(&AgentStatus::Reconnecting)
                && session.statuses.last() == Some(&AgentStatus::Connected)
        })
        .await;
}

#[tokio::test]
async fn a_provider_that_is_dropped_takes_its_process_along() {
    let bench = Bench::new(&[]);
    let session = bench.create().await;
    let pid = bench.pid().await;
    drop(bench);
    until("the process to be gone", || !is_running(pid)).await;
    drop(session);
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// The daemons of the agent with this process id.
pub(crate) fn sleepers(agent: u32) -> Vec<u32> {
    let line = format!("sleep\x001000.{agent}\x00");
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes
        .filter(|pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|found| found == line.as_bytes()))
        .collect()
}
