//! Finds the program under test, fresh.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The program under test. `LIMINAL_BIN` names one; otherwise the one beside the tests is brought up to date.
///
/// # Panics
/// When it cannot be built.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("LIMINAL_BIN") {
        Some(given) => given.into(),
        None => build("liminal-builder"),
    })
}

/// `cargo test -p` builds only what that package needs, so the program may be missing or older than its sources.
fn build(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|error| panic!("where is this test? {error}"));
    // target/<profile>/deps/<test>
    let profile_dir = test.parent().and_then(Path::parent).unwrap_or_else(|| panic!("{test:?} is not in target/"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", name, "--bin", name]).stdin(Stdio::null());
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

/// Runs the program with these arguments until it ends by itself.
///
/// # Panics
/// When it cannot be started.
pub fn run_to_end(args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("could not run the program: {error}"))
}
