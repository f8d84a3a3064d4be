//! Agents that read their stdin late or never, or stop reading it.

use std::time::Duration;

use agent_process::{AgentProcess, ExitStatus, QUEUE_BYTES_MAX, SendError};

use crate::harness::{DEADLINE, PATIENT, QUICK, agent, line, soon, spawn, until};

#[tokio::test]
async fn an_agent_that_stops_reading_causes_an_error_and_not_growing_memory() {
    let command = agent(&["deaf"]).stdin_patience(Duration::from_millis(200));
    let (_stdout, stdin, process) = AgentProcess::spawn(command).await.unwrap().split();
    let mut accepted_bytes = 0;
    let refused = loop {
        match soon(stdin.send(vec![b'x'; 100_000])).await {
            Ok(()) => accepted_bytes += 100_001,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, SendError::Stalled { waited: Duration::from_millis(200) });
    // The queue, what the pipe holds, and the line that is being written.
    assert!(accepted_bytes <= QUEUE_BYTES_MAX + 2 * 1024 * 1024, "{accepted_bytes}");
    assert_eq!(soon(process.stop(QUICK)).await.status, ExitStatus::Signal(libc::SIGTERM));
    assert_eq!(stdin.send("x").await, Err(SendError::Closed));
}

#[tokio::test]
async fn a_full_stdin_does_not_block_the_reader() {
    // Both pipes are full here: the echo cannot write before we read, and cannot read before it has written.
    let (mut stdout, stdin, _process) = spawn(&["echo"]).await.split();
    let sent = "x".repeat(1_000_000);
    let send = async {
        for _ in 0..30 {
            stdin.send(sent.clone()).await.unwrap();
        }
    };
    let receive = async {
        for _ in 0..30 {
            assert_eq!(line(&mut stdout).await.len(), sent.len());
        }
    };
    soon(async { tokio::join!(send, receive) }).await;
}

#[tokio::test]
async fn closing_one_writer_closes_stdin_for_all_its_clones() {
    let (mut stdout, stdin, process) = spawn(&["echo"]).await.split();
    let clone = stdin.clone();
    stdin.send("last").await.unwrap();
    stdin.close();
    assert_eq!(clone.send("late").await, Err(SendError::Closed));
    assert_eq!(line(&mut stdout).await, "last");
    assert!(soon(process.exited()).await.is_success());
}

#[tokio::test]
async fn dropping_the_last_writer_closes_stdin() {
    let (_stdout, stdin, process) = spawn(&["silent"]).await.split();
    let clone = stdin.clone();
    drop((stdin, clone));
    assert!(soon(process.exited()).await.is_success());
}

#[tokio::test]
async fn writing_to_an_agent_that_is_gone_is_an_error() {
    let (_stdout, stdin, process) = spawn(&["die", "3"]).await.split();
    soon(process.exited()).await;
    assert_eq!(stdin.send("x").await, Err(SendError::Closed));
    assert!(stdin.is_closed());
}

#[tokio::test]
async fn a_sender_that_waits_for_a_stalled_agent_fails_when_the_agent_is_gone() {
    let (_stdout, stdin, process) = spawn(&["deaf"]).await.split();
    let fill = async {
        loop {
            if let Err(error) = stdin.send(vec![b'x'; QUEUE_BYTES_MAX]).await {
                break error;
            }
        }
    };
    let (error, _) = soon(async { tokio::join!(fill, process.kill()) }).await;
    assert_eq!(error, SendError::Closed);
}

#[tokio::test]
async fn a_cancelled_send_leaves_no_half_line() {
    let (mut stdout, stdin, process) = spawn(&["echo"]).await.split();
    for number in 0..100 {
        let long = format!("{number} {}", "x".repeat(500_000));
        tokio::select! {
            biased;
            sent = stdin.send(long) => sent.unwrap(),
            () = tokio::task::yield_now() => {}
        }
        // Nothing reads in the meantime, so the queue is full and later lines are cancelled.
    }
    stdin.close();
    let mut whole = 0;
    while let Some(line) = soon(stdout.next_line()).await.unwrap() {
        assert!(line.as_bytes().len() > 500_000, "half a line");
        whole += 1;
    }
    assert!((1..100).contains(&whole), "{whole}");
    assert!(tokio::time::timeout(DEADLINE, process.stop(PATIENT)).await.unwrap().is_success());
    until("stdin is closed", || stdin.is_closed()).await;
}
