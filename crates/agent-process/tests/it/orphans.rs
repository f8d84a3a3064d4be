//! No process is left behind: not when the server is killed, not when the guardian is.

use std::process::Stdio;

use agent_process::{ExitStatus, StopLadder};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::harness::{FIXTURE, QUICK, kill, line, lives, pids_until_ready, soon, spawn, until};

/// A server with an agent, and the pids of the agent, its guardian and all their descendants.
async fn server_with_family(behaviour: &str) -> (Child, Vec<u32>) {
    let mut server = Command::new(FIXTURE)
        .args(["server", "family", behaviour])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut tree = Vec::new();
    loop {
        match soon(lines.next_line()).await.unwrap().unwrap().as_str() {
            "ready" => return (server, tree),
            pid => tree.push(pid.parse().unwrap()),
        }
    }
}

#[tokio::test]
async fn when_the_server_is_killed_nothing_that_its_agent_started_survives() {
    for behaviour in ["polite", "stubborn"] {
        let (mut server, tree) = server_with_family(behaviour).await;
        // The agent, its guardian and four descendants.
        assert_eq!(tree.len(), 6);
        assert!(tree.iter().copied().all(lives));
        server.kill().await.unwrap();
        until("all gone", || !tree.iter().copied().any(lives)).await;
    }
}

#[tokio::test]
async fn when_the_guardian_is_killed_the_agent_and_all_it_started_go_too() {
    let (mut stdout, _stdin, process) = spawn(&["family", "stubborn"]).await.split();
    let family = pids_until_ready(&mut stdout).await;
    kill(process.guardian_pid());
    assert_eq!(soon(process.gone()).await.status, ExitStatus::Lost);
    let left: Vec<u32> = family.into_iter().chain([process.pid()]).filter(|pid| lives(*pid)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn when_server_and_guardian_are_killed_together_the_agent_goes_too_and_the_next_server_ends_the_rest() {
    let (mut server, tree) = server_with_family("stubborn").await;
    let [agent, guardian, family @ ..] = &tree[..] else { panic!("{tree:?}") };
    // Both are stopped when they are killed, so neither can notice the end of the other.
    for pid in [server.id().unwrap(), *guardian] {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    kill(*guardian);
    server.kill().await.unwrap();
    until("the agent to be gone", || !lives(*agent)).await;
    assert!(family.iter().copied().any(lives), "nothing was left behind, so this proves nothing");

    // It must not touch an agent of another server.
    let (mut stdout, stdin, process) = spawn(&["echo"]).await.split();
    let next = Command::new(FIXTURE).arg("end-leftovers").output();
    assert!(soon(next).await.unwrap().status.success());
    until("all gone", || !tree.iter().copied().any(lives)).await;
    stdin.send("still here").await.unwrap();
    assert_eq!(line(&mut stdout).await, "still here");
    soon(process.stop(QUICK)).await;
}

#[tokio::test]
async fn when_an_agent_dies_what_it_started_does_not_outlive_it() {
    let (mut stdout, _stdin, process) = spawn(&["family", "polite"]).await.split();
    let family = pids_until_ready(&mut stdout).await;
    kill(process.pid());
    assert_eq!(soon(process.gone()).await.status, ExitStatus::Signal(libc::SIGKILL));
    assert!(!family.iter().copied().any(lives));
}

#[tokio::test]
async fn a_guardian_ignores_a_request_to_exit() {
    let (mut stdout, stdin, process) = spawn(&["echo"]).await.split();
    let guardian = rustix::process::Pid::from_raw(process.guardian_pid().cast_signed()).unwrap();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT, rustix::process::Signal::HUP] {
        rustix::process::kill_process(guardian, signal).unwrap();
    }
    stdin.send("still here").await.unwrap();
    assert_eq!(line(&mut stdout).await, "still here");
    assert!(soon(process.stop(QUICK)).await.is_success());
}

#[tokio::test]
async fn a_frozen_guardian_does_not_keep_its_agent_alive() {
    let (mut stdout, _stdin, process) = spawn(&["family", "stubborn"]).await.split();
    let family = pids_until_ready(&mut stdout).await;
    let guardian = rustix::process::Pid::from_raw(process.guardian_pid().cast_signed()).unwrap();
    rustix::process::kill_process(guardian, rustix::process::Signal::STOP).unwrap();
    assert_eq!(soon(process.stop(QUICK)).await.status, ExitStatus::Lost);
    assert!(!family.into_iter().chain([process.pid()]).any(lives));
}

#[tokio::test]
async fn an_agent_receives_the_signals_that_its_guardian_ignores() {
    let process = spawn(&["deaf"]).await.handle;
    let pid = rustix::process::Pid::from_raw(process.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(soon(process.exited()).await.status, ExitStatus::Signal(libc::SIGINT));
}

#[tokio::test]
async fn a_frozen_agent_is_terminated_too() {
    let process = spawn(&["deaf"]).await.handle;
    let pid = rustix::process::Pid::from_raw(process.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let ladder = StopLadder { grace_term: crate::harness::DEADLINE, ..QUICK };
    assert_eq!(soon(process.stop(ladder)).await.status, ExitStatus::Signal(libc::SIGTERM));
}
