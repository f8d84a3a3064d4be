//! A Claude Code that prints its version and then hangs when it is asked whether it is logged in.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use providers::Provider;
use providers::claude::{ClaudeConfig, ClaudeProvider};
use testkit::programs;

use crate::listener::soon;

/// In the environment of the server that is to be killed: where its Claude Code is.
const SERVER_OF: &str = "PROVIDERS_TEST_SERVER_OF";

/// It does not exit when it is asked to, and writes its process id and that of a helper to a file.
const HANGS: &str = r#"
if [ "$1" = --version ]; then echo "9.0.0 (Claude Code)"; exit; fi
trap '' TERM HUP
sleep 600 &
echo "$$ $!" > "$0.writing" && mv "$0.writing" "$0.pids"
wait
"#;

fn config(directory: &Path) -> ClaudeConfig {
    let script = directory.join("claude");
    std::fs::write(&script, HANGS).unwrap();
    ClaudeConfig {
        command: format!("sh {}", script.display()),
        start_timeout: Duration::from_secs(3600),
        guardian: Some(programs::scripted_agent().to_owned()),
        ..ClaudeConfig::default()
    }
}

/// The process that hangs and its helper, once they are there.
async fn hanging(directory: &Path) -> Vec<PathBuf> {
    let pid_file = directory.join("claude.pids");
    soon("the program to be asked", async {
        while !pid_file.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let pids = std::fs::read_to_string(pid_file).unwrap();
    pids.split_whitespace().map(|pid| Path::new("/proc").join(pid)).collect()
}

async fn until_gone(processes: &[PathBuf]) {
    soon("the processes to be gone", async {
        while processes.iter().any(|process| process.join("exe").read_link().is_ok()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_program_that_does_not_say_whether_it_is_logged_in_is_ended_though_nobody_asks_again() {
    let directory = tempfile::tempdir().unwrap();
    // Longer than the list waits.
    let config = ClaudeConfig { start_timeout: Duration::from_secs(5), ..config(directory.path()) };
    let provider = ClaudeProvider::new(config).unwrap();
    let info = soon("the description", provider.describe()).await;
    assert_eq!((info.version.as_deref(), info.logged_in), (Some("9.0.0"), None));
    let processes = hanging(directory.path()).await;
    assert_eq!(processes.len(), 2);
    until_gone(&processes).await;
}

#[tokio::test]
async fn a_program_that_still_thinks_about_its_login_does_not_hold_up_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let provider = ClaudeProvider::new(config(directory.path())).unwrap();
    soon("the description", provider.describe()).await;
    let processes = hanging(directory.path()).await;
    soon("the end", provider.shutdown()).await;
    until_gone(&processes).await;
}

#[tokio::test]
async fn a_program_that_is_asked_for_its_login_does_not_outlive_a_killed_server() {
    if let Some(directory) = std::env::var_os(SERVER_OF) {
        let provider = ClaudeProvider::new(config(Path::new(&directory))).unwrap();
        provider.describe().await;
        return std::future::pending().await;
    }
    let directory = tempfile::tempdir().unwrap();
    let name = "claude_login::a_program_that_is_asked_for_its_login_does_not_outlive_a_killed_server";
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(SERVER_OF, directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let processes = hanging(directory.path()).await;
    server.kill().unwrap();
    server.wait().unwrap();
    until_gone(&processes).await;
}
