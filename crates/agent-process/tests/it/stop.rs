//! The stop ladder: polite agents exit at its first step, the others later; none stays.

use agent_process::{ExitStatus, StopLadder};

use crate::harness::{DEADLINE, PATIENT, QUICK, line, lives, pids_until_ready, soon, spawn, until};

#[tokio::test]
async fn an_agent_that_exits_when_its_stdin_ends_is_not_signalled() {
    let process = spawn(&["silent"]).await.handle;
    assert!(soon(process.stop(PATIENT)).await.is_success());
    assert!(!lives(process.pid()) && !lives(process.guardian_pid()));
}

#[tokio::test]
async fn an_agent_that_stays_is_terminated() {
    let process = spawn(&["deaf"]).await.handle;
    let report = soon(process.stop(StopLadder { grace_term: DEADLINE, ..QUICK })).await;
    assert_eq!(report.status, ExitStatus::Signal(libc::SIGTERM));
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed() {
    let (mut stdout, _stdin, process) = spawn(&["stubborn"]).await.split();
    line(&mut stdout).await;
    assert_eq!(soon(process.stop(QUICK)).await.status, ExitStatus::Signal(libc::SIGKILL));
}

#[tokio::test]
async fn a_stop_that_takes_too_long_can_be_made_a_kill() {
    let (mut stdout, _stdin, process) = spawn(&["stubborn"]).await.split();
    line(&mut stdout).await;
    let (stopped, killed) = soon(async { tokio::join!(process.stop(PATIENT), process.kill()) }).await;
    assert_eq!(stopped.status, ExitStatus::Signal(libc::SIGKILL));
    assert_eq!(stopped, killed);
}

#[tokio::test]
async fn a_stop_continues_when_its_caller_is_cancelled() {
    let (mut stdout, _stdin, process) = spawn(&["stubborn"]).await.split();
    line(&mut stdout).await;
    tokio::select! {
        biased;
        _ = process.stop(QUICK) => panic!("too early"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(soon(process.gone()).await.status, ExitStatus::Signal(libc::SIGKILL));
}

#[tokio::test]
async fn a_stopping_agent_with_much_output_is_not_blocked_by_a_reader_that_does_not_read() {
    let (_stdout, _stdin, process) = spawn(&["flood-after-stdin", "10000000"]).await.split();
    assert!(soon(process.stop(PATIENT)).await.is_success());
}

#[tokio::test]
async fn a_reader_gets_all_output_of_a_stopping_agent() {
    let (mut stdout, _stdin, process) = spawn(&["flood-after-stdin", "10000000"]).await.split();
    let read = async {
        let mut lines = 0;
        while stdout.next_line().await.unwrap().is_some() {
            lines += 1;
        }
        lines
    };
    let (report, lines) = soon(async { tokio::join!(process.stop(PATIENT), read) }).await;
    assert!(report.is_success());
    assert_eq!(lines, 10_000);
}

#[tokio::test]
async fn an_agent_whose_reader_was_dropped_is_not_blocked() {
    let (stdout, _stdin, process) = spawn(&["flood", "10000000"]).await.split();
    drop(stdout);
    assert!(soon(process.exited()).await.is_success());
}

#[tokio::test]
async fn all_descendants_of_an_agent_end_with_it() {
    for behaviour in ["polite", "stubborn"] {
        let (mut stdout, _stdin, process) = spawn(&["family", behaviour]).await.split();
        let family = pids_until_ready(&mut stdout).await;
        assert_eq!(family.len(), 4);
        assert!(family.iter().copied().all(lives));
        soon(process.stop(QUICK)).await;
        let left: Vec<u32> = family.into_iter().filter(|pid| lives(*pid)).collect();
        assert!(left.is_empty(), "{behaviour}: {left:?}");
    }
}

#[tokio::test]
async fn dropping_every_handle_ends_the_agent_and_its_descendants() {
    let process = spawn(&["family", "stubborn"]).await;
    let (mut stdout, stdin, handle) = process.split();
    let mut family = pids_until_ready(&mut stdout).await;
    family.extend([handle.pid(), handle.guardian_pid()]);
    let clone = handle.clone();
    drop((handle, stdin));
    assert!(lives(clone.pid()));
    drop(clone);
    until("all gone", || !family.iter().copied().any(lives)).await;
}
