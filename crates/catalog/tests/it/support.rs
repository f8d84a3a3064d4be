//! A data directory with directories to add beside it, and a catalog in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use catalog::{Catalog, Opened};
use protocol::{ProjectId, SessionId, Timestamp};
use serde_json::Value;
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_secs(30);

/// Gone when dropped.
pub(crate) struct Home {
    root: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    /// With every symlink on the way resolved, as projects are saved.
    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root().join("data")
    }

    pub(crate) fn open(&self) -> Catalog {
        let Opened { catalog, notices } = Catalog::open(&self.data()).unwrap();
        assert_eq!(notices, Vec::<String>::new());
        catalog
    }

    /// Makes a directory and returns its path.
    pub(crate) fn directory(&self, name: &str) -> String {
        let path = self.root().join(name);
        fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        // For the user alone, whatever the umask: a directory that others may write to is refused.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.data()).unwrap();
        fs::write(self.data().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.data().join(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Names in the data directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(self.data()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The one file whose name begins so.
    pub(crate) fn one_named(&self, prefix: &str) -> String {
        let mut names = self.names();
        names.retain(|name| name.starts_with(prefix));
        assert_eq!(names.len(), 1, "{prefix}: {names:?}");
        names.remove(0)
    }
}

pub(crate) fn session_id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

pub(crate) fn project_id(text: &str) -> ProjectId {
    ProjectId::parse(text).unwrap()
}

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

/// Waits for something that can be seen.
pub(crate) fn eventually(what: &str, seen: impl Fn() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !seen() {
        assert!(Instant::now() < until, "never saw: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// `catalog-fixture DIR serve`: a server's catalog, without the server. Killed when dropped.
pub(crate) struct Fixture {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What it reported when it had opened the catalog, or failed to.
    pub(crate) greeting: Value,
}

pub(crate) fn fixture_program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_catalog-fixture"))
}

impl Fixture {
    pub(crate) fn serve(data: &Path) -> Self {
        let mut command = Command::new(fixture_program());
        command.arg(data).arg("serve");
        Self::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut fixture = Self { child, commands, answers, greeting: Value::Null };
        fixture.greeting = fixture.answer();
        fixture
    }

    pub(crate) fn ask(&mut self, command: &str) -> Value {
        writeln!(self.commands, "{command}").unwrap();
        self.answer()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
