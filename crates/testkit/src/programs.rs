//! Programs the tests run: our own scripted ones, and the real agents.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::DEADLINE;

/// The program under test. `LIMINAL_BIN` names one; otherwise the one beside the tests is brought up to date.
///
/// # Panics
/// When it cannot be built.
pub fn liminal_builder() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| match std::env::var_os("LIMINAL_BIN") {
        Some(given) => given.into(),
        None => build("liminal-builder", "liminal-builder"),
    })
}

/// Makes a program of a script. Another process writes it: what this one has open for writing, a test beside it may hand to a
/// child, and a file that anyone has open for writing cannot be run.
///
/// # Panics
/// When it cannot be written.
pub fn script(path: &Path, text: &str) {
    let write = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
    let status = Command::new("sh").args(["-c", write]).arg(path).arg(text).status();
    assert!(status.is_ok_and(|status| status.success()), "{} cannot be written", path.display());
}

/// Runs the program under test with these arguments until it ends by itself. What it prints must fit into a pipe.
///
/// # Panics
/// When it cannot be started or does not end.
pub fn run_to_end(args: &[&str]) -> Output {
    let mut command = Command::new(liminal_builder());
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("could not run the program: {error}"));
    let until = Instant::now() + DEADLINE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > until {
            // It may have ended this moment.
            let _ = child.kill();
            panic!("the program did not end with {args:?}");
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap_or_else(|error| panic!("its output cannot be read: {error}"))
}

/// The scripted agent, fresh. It is also a guardian, for tests whose own program cannot be one.
///
/// # Panics
/// When it cannot be built.
pub fn scripted_agent() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("testkit", "scripted-agent"))
}

/// The real Claude Code.
///
/// # Panics
/// When it is not installed.
pub fn claude() -> PathBuf {
    agent("@anthropic-ai/claude-code-linux-x64/claude")
}

/// The real Codex, as an ACP agent.
///
/// # Panics
/// When it is not installed.
pub fn codex_acp() -> PathBuf {
    agent(".bin/codex-acp")
}

fn agent(path: &str) -> PathBuf {
    let program = profile_dir().join("../agents/node_modules").join(path);
    assert!(program.is_file(), "{} is not there: run `scripts/agents` to install it", program.display());
    program
}

/// `cargo test -p` builds only what that package needs, so the program may be missing or older than its sources.
fn build(package: &str, name: &str) -> PathBuf {
    let profile_dir = profile_dir();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", package, "--bin", name]).stdin(Stdio::null());
    if profile_dir.file_name().is_some_and(|profile| profile == "release") {
        cargo.arg("--release");
    }
    if let Some(target_dir) = profile_dir.parent() {
        cargo.arg("--target-dir").arg(target_dir);
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let status = cargo.status().unwrap_or_else(|error| panic!("could not run cargo: {error}"));
    assert!(status.success(), "could not build {name}");
    profile_dir.join(name)
}

/// Tests are `target/<profile>/deps/<test>`.
fn profile_dir() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|error| panic!("where is this test? {error}"));
    let directory = test.parent().and_then(Path::parent).unwrap_or_else(|| panic!("{test:?} is not in target/"));
    directory.to_owned()
}
