//! Directory names offered while a path is typed.
//!
//! Bounded in what it reads, how long it looks and how much it answers: the directory may hold a million entries or lie
//! on a slow network. Kept out: the user's projects, which come in as a question.

use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::{Duration, Instant};

use protocol::PathCompletion;

use crate::git;
use crate::paths::{self, PATH_BYTES_MAX};

const COMPLETIONS_MAX: usize = 50;
/// Reading this many names takes well under a tenth of a second on a local disk.
const ENTRIES_SCANNED_MAX: usize = 100_000;
/// A person types on; an answer later than this is of no use.
const SCAN_TIME_MAX: Duration = Duration::from_millis(500);

/// Directories whose path continues `prefix`, exact case first, then by name.
pub(crate) fn complete(prefix: &str, is_project: impl Fn(&str) -> bool) -> Vec<PathCompletion> {
    if prefix.len() > PATH_BYTES_MAX {
        return Vec::new();
    }
    let prefix = if prefix.is_empty() || prefix == "~" { "~/" } else { prefix };
    let Some((parent, stem)) = prefix.rsplit_once('/') else { return Vec::new() };
    let typed = format!("{parent}/");
    let Some(directory) = paths::expand(&typed) else { return Vec::new() };
    let until = Instant::now() + SCAN_TIME_MAX;
    matching(&directory, stem, until)
        .into_iter()
        .take_while(|_| Instant::now() < until)
        .filter(|candidate| candidate.entry.path().is_dir())
        .take(COMPLETIONS_MAX)
        .map(|candidate| PathCompletion {
            path: format!("{typed}{}/", candidate.name),
            is_project: fs::canonicalize(candidate.entry.path())
                .is_ok_and(|canonical| canonical.to_str().is_some_and(&is_project)),
            is_repository: git::is_repository(&candidate.entry.path()),
        })
        .collect()
}

struct Candidate {
    name: String,
    entry: DirEntry,
}

/// Entries that may be directories and begin as typed, best first. Looks at no entry's target yet.
fn matching(directory: &Path, stem: &str, until: Instant) -> Vec<Candidate> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let lower_stem = stem.to_lowercase();
    let mut found: Vec<_> = entries
        .take(ENTRIES_SCANNED_MAX)
        .take_while(|_| Instant::now() < until)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let lower = name.to_lowercase();
            let hidden = name.starts_with('.') && !stem.starts_with('.');
            if hidden || !lower.starts_with(&lower_stem) {
                return None;
            }
            let kind = entry.file_type().ok()?;
            if !(kind.is_dir() || kind.is_symlink()) {
                return None;
            }
            let order = (!name.starts_with(stem), lower);
            Some((order, Candidate { name, entry }))
        })
        .collect();
    found.sort_by(|(a, a_candidate), (b, b_candidate)| a.cmp(b).then_with(|| a_candidate.name.cmp(&b_candidate.name)));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}
