//! The journal in a process of its own, and what can be done to it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use journal::{Journal, Read, SqliteJournal};
use protocol::{UpsertBody, UpsertStatus};
use serde_json::Value;

use crate::samples::session;

pub(crate) fn fixture_program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_journal-fixture"))
}

/// A child that runs one command per line.
pub(crate) struct Fixture {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What it reported when it had opened the journal, or failed to.
    pub(crate) greeting: Value,
}

impl Fixture {
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

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A child that records without end.
pub(crate) struct Churn {
    child: Child,
    lines: BufReader<ChildStdout>,
    answered: Answered,
}

/// The last number of each session that was answered, and the last one that was confirmed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    pub(crate) committed: BTreeMap<u64, u64>,
    pub(crate) confirmed: BTreeMap<u64, u64>,
}

impl Churn {
    pub(crate) fn start(directory: &Path, shim: Option<&Path>) -> Self {
        let mut command = Command::new(fixture_program());
        command.arg(directory).args(["churn", "3"]).stdout(Stdio::piped());
        if let Some(shim) = shim {
            command.env("LD_PRELOAD", shim);
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, answered: Answered::default() }
    }

    pub(crate) fn read_lines(&mut self, count: usize) -> &Answered {
        for _ in 0..count {
            assert!(self.read_line(), "the child stopped");
        }
        &self.answered
    }

    /// A line that was cut off in the middle confirms nothing.
    fn read_line(&mut self) -> bool {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let Ok((session, seq, is_confirmed)) = serde_json::from_str::<(u64, u64, bool)>(&line) else { return false };
        self.answered.committed.insert(session, seq);
        if is_confirmed {
            self.answered.confirmed.insert(session, seq);
        }
        true
    }

    pub(crate) fn kill(mut self) -> Answered {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while self.read_line() {}
        std::mem::take(&mut self.answered)
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Opens what a churn left: it is whole, it has these numbers at least, and every text is what was said.
pub(crate) async fn expect_recorded(directory: &Path, expected: &BTreeMap<u64, u64>) {
    let opened = SqliteJournal::open(directory).unwrap();
    assert_eq!(opened.notices, Vec::<String>::new());
    let journal = opened.journal;
    let report = journal.check().await.unwrap();
    assert_eq!((report.damage, report.contradictions), (vec![], vec![]));
    for (number, seq) in expected {
        let head = journal.find(&session(&number.to_string())).await.unwrap().unwrap();
        assert!(head.seq >= *seq, "session {number} has {} and {seq} was answered", head.seq);
        let page = journal.read(head.key, Read::Newest { limit: usize::MAX }).await.unwrap();
        assert_eq!(page.items.len() as u64, head.items);
        for (message, item) in page.items.iter().enumerate() {
            assert_eq!(item.upsert.item_id.as_str(), format!("item-{message}"));
            let UpsertBody::Message { content, .. } = &item.upsert.body else { panic!("a message") };
            let pieces = 1 + message % 6;
            let whole: Vec<String> = (0..pieces).map(|piece| piece_text(message, piece)).collect();
            let is_prefix = (1..=pieces).any(|count| *content == whole[..count].concat());
            assert!(is_prefix, "item-{message} has another text");
            if item.upsert.status == UpsertStatus::Complete {
                assert_eq!(*content, whole.concat());
            }
        }
    }
    journal.close().await;
}

fn piece_text(message: usize, piece: usize) -> String {
    format!("[{message}/{piece}]{}", "x".repeat((message * 7 + piece * 131) % 900))
}

pub(crate) fn copy(from: &Path, to: &Path) {
    for name in ["journal.db", "journal.db-wal"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}
