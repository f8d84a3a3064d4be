//! The cost of the guardian: time from spawn to the agent's first line, and the round trip of one line.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed measurement")]

use std::process::Stdio;

use agent_process::{AgentCommand, AgentProcess, ProcessHandle, StopLadder};
use divan::Bencher;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

const FIXTURE: &str = env!("CARGO_BIN_EXE_agent-process-fixture");

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn guarded(behaviour: &str) -> AgentProcess {
    AgentProcess::spawn(AgentCommand::new(FIXTURE).arg(behaviour).guardian(FIXTURE)).await.unwrap()
}

fn plain(behaviour: &str) -> Child {
    Command::new(FIXTURE).arg(behaviour).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Waits for the process to end outside the measured time, so that one sample does not slow down the next.
struct WaitOnDrop<'a, P: FnMut(&Runtime)>(&'a Runtime, P);

impl<P: FnMut(&Runtime)> Drop for WaitOnDrop<'_, P> {
    fn drop(&mut self) {
        self.1(self.0);
    }
}

#[divan::bench(sample_size = 1)]
fn first_line_under_a_guardian(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let first_line = async || -> ProcessHandle {
        let (mut stdout, _, process) = guarded("answer-and-die").await.split();
        stdout.next_line().await.unwrap().unwrap();
        process
    };
    bencher.bench_local(|| {
        let process = runtime.block_on(first_line());
        WaitOnDrop(&runtime, move |runtime| {
            runtime.block_on(process.gone());
        })
    });
}

#[divan::bench(sample_size = 1)]
fn first_line_of_a_plain_child(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let first_line = async || {
        let mut child = plain("answer-and-die");
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).await.unwrap();
        child
    };
    bencher.bench_local(|| {
        let mut child = runtime.block_on(first_line());
        WaitOnDrop(&runtime, move |runtime| {
            runtime.block_on(child.wait()).unwrap();
        })
    });
}

#[divan::bench(sample_size = 100)]
fn line_there_and_back_under_a_guardian(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let (mut stdout, stdin, process) = runtime.block_on(guarded("echo")).split();
    bencher.bench_local(|| {
        runtime.block_on(async {
            stdin.send("line").await.unwrap();
            stdout.next_line().await.unwrap().unwrap()
        })
    });
    runtime.block_on(process.stop(StopLadder::default()));
}

#[divan::bench(sample_size = 100)]
fn line_there_and_back_with_a_plain_child(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let mut child = runtime.block_on(async { plain("echo") });
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    bencher.bench_local(|| {
        runtime.block_on(async {
            stdin.write_all(b"line\n").await.unwrap();
            stdout.next_line().await.unwrap().unwrap()
        })
    });
    drop(stdin);
    runtime.block_on(child.wait()).unwrap();
}
