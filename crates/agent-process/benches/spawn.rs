//! What the guardian costs: from the wish to start an agent to its first line, and for a line there and back.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed measurement")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use agent_process::{AgentCommand, AgentProcess, LineReader, LineWriter, StopLadder};
use divan::Bencher;
use tokio::runtime::Runtime;

const FIXTURE: &str = env!("CARGO_BIN_EXE_agent-process-fixture");

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

async fn start(temper: &str) -> AgentProcess {
    AgentProcess::spawn(AgentCommand::new(FIXTURE).arg(temper).guardian(FIXTURE)).await.unwrap()
}

#[divan::bench]
fn first_line_under_a_guardian(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    bencher.bench_local(|| {
        runtime.block_on(async {
            let mut agent = start("answer-and-die").await;
            agent.stdout.next_line().await.unwrap().unwrap();
            agent
        })
    });
}

#[divan::bench]
fn first_line_of_a_plain_child(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let mut child = Command::new(FIXTURE).arg("answer-and-die").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.wait().unwrap();
    });
}

#[divan::bench]
fn line_there_and_back_under_a_guardian(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let (mut stdout, stdin, process) = runtime.block_on(start("echo")).split();
    let exchange = async |stdout: &mut LineReader, stdin: &LineWriter| {
        stdin.send("line").await.unwrap();
        stdout.next_line().await.unwrap().unwrap()
    };
    bencher.bench_local(|| runtime.block_on(exchange(&mut stdout, &stdin)));
    runtime.block_on(process.stop(StopLadder::default()));
}

#[divan::bench]
fn line_there_and_back_with_a_plain_child(bencher: Bencher<'_, '_>) {
    let mut child = Command::new(FIXTURE).arg("echo").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    bencher.bench_local(|| {
        stdin.write_all(b"line\n").unwrap();
        line.clear();
        stdout.read_line(&mut line).unwrap()
    });
    drop(stdin);
    child.wait().unwrap();
}
