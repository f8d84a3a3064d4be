//! Agents that do not start or exit early, and how this is reported.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use agent_process::{AgentCommand, AgentProcess, ExitStatus, NoAnswer, STDERR_TAIL_BYTES, SpawnError};

use crate::harness::{DEADLINE, FIXTURE, QUICK, agent, line, lives, soon, spawn};

async fn spawn_error(command: AgentCommand) -> SpawnError {
    soon(AgentProcess::spawn(command)).await.unwrap_err()
}

#[tokio::test]
async fn a_program_that_is_not_installed_is_not_found() {
    let error = spawn_error(AgentCommand::new("no-such-agent").guardian(FIXTURE)).await;
    assert!(matches!(&error, SpawnError::NotFound { program } if program == "no-such-agent"), "{error:?}");
}

#[tokio::test]
async fn files_that_are_not_programs_are_distinguished_from_programs_that_fail() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        AgentCommand::new(path).guardian(FIXTURE)
    };
    let unmarked = spawn_error(file("unmarked", "#!/bin/sh\n", 0o644)).await;
    assert!(matches!(unmarked, SpawnError::NotExecutable { .. }), "{unmarked:?}");
    let folder = spawn_error(AgentCommand::new(directory.path()).guardian(FIXTURE)).await;
    assert!(matches!(folder, SpawnError::NotExecutable { .. }), "{folder:?}");
    let no_interpreter = spawn_error(file("script", "#!/no/such/interpreter\n", 0o755)).await;
    assert!(matches!(no_interpreter, SpawnError::Failed { .. }), "{no_interpreter:?}");
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let error = spawn_error(agent(&["echo"]).current_dir("/no/such/directory")).await;
    assert_eq!(error.to_string(), "`/no/such/directory` is not a directory");
}

#[tokio::test]
async fn a_program_that_is_not_a_guardian_is_an_error_and_not_a_hang() {
    for guardian in ["/bin/true", "/no/such/guardian"] {
        let error = spawn_error(agent(&["echo"]).guardian(guardian)).await;
        assert!(matches!(error, SpawnError::Guardian { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_agent_runs_in_its_directory_and_environment() {
    let directory = tempfile::tempdir().unwrap();
    let command = agent(&["environment", "FIRST", "HOME"])
        .env("FIRST", "with space")
        .env_remove("HOME")
        .current_dir(directory.path());
    let (mut stdout, _stdin, _process) = AgentProcess::spawn(command).await.unwrap().split();
    assert_eq!(line(&mut stdout).await, "with space");
    assert_eq!(line(&mut stdout).await, "(none)");
    assert_eq!(line(&mut stdout).await, directory.path().canonicalize().unwrap().display().to_string());
}

#[tokio::test]
async fn an_agent_that_exits_at_once_reports_why() {
    let process = spawn(&["die", "3", "bad flag --x"]).await.handle;
    let report = soon(process.exited()).await;
    assert_eq!(report.status, ExitStatus::Code(3));
    assert_eq!(report.stderr_tail, "starting\nbad flag --x\n");
    assert_eq!(report.to_string(), "exit code 3: bad flag --x");
    assert_eq!(process.exit(), Some(report));
}

#[tokio::test]
async fn an_agent_that_dies_by_a_signal_reports_which() {
    let process = spawn(&["die-by-signal"]).await.handle;
    assert_eq!(soon(process.exited()).await.status, ExitStatus::Signal(libc::SIGABRT));
}

#[tokio::test]
async fn an_agent_that_exits_before_it_answers_is_distinguished_from_a_silent_one() {
    let (mut stdout, _stdin, process) = spawn(&["die", "2", "no login"]).await.split();
    let answer = async {
        stdout.next_line().await.unwrap();
        std::future::pending::<()>().await;
    };
    let died = soon(process.answer(DEADLINE, answer)).await;
    assert!(matches!(died, Err(NoAnswer::Exited(report)) if report.last_stderr_line() == Some("no login")));

    let (mut stdout, _stdin, process) = spawn(&["silent"]).await.split();
    let silent = soon(process.answer(Duration::from_millis(50), stdout.next_line())).await;
    assert!(matches!(silent, Err(NoAnswer::Silent { .. })), "{silent:?}");
    assert!(lives(process.pid()));
}

#[tokio::test]
async fn an_answer_sent_just_before_the_exit_is_received() {
    let (mut stdout, _stdin, process) = spawn(&["answer-and-die"]).await.split();
    soon(process.gone()).await;
    let answer = soon(process.answer(DEADLINE, stdout.next_line())).await;
    assert_eq!(answer.unwrap().unwrap().unwrap().as_bytes(), b"answer");
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_nothing_and_its_tail_is_kept() {
    let process = spawn(&["flood-stderr", "100000000"]).await.handle;
    let report = soon(process.exited()).await;
    assert!(report.is_success());
    assert_eq!(report.stderr_tail.len(), STDERR_TAIL_BYTES);
    assert_eq!(report.last_stderr_line().map(str::len), Some(999));
    assert_eq!(soon(process.stop(QUICK)).await, report);
}
