//! Where Claude Code keeps the file of a session.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use protocol::AgentSessionId;
use serde::Deserialize;

/// Longer names are cut, and a digest distinguishes them.
const SLUG_CHARS_MAX: usize = 200;
/// How much of a file is searched for its directory: the first entry that names one is among the first few.
const CWD_SEARCH_BYTES: u64 = 4 * 1024 * 1024;

/// Directories that are suggested, which is as many as a person looks through.
const RECENT_MAX: usize = 10;
/// Entries of a directory that are looked at; years of work leave fewer.
const ENTRIES_MAX: usize = 5_000;

/// The file of a session, if there is one and it belongs to this directory. Two directories may share a name there,
/// so the entries themselves decide.
pub(super) fn session_file(config_dir: &Path, project_dir: &Path, id: &AgentSessionId) -> Option<PathBuf> {
    let project_dir = std::fs::canonicalize(project_dir).unwrap_or_else(|_| project_dir.to_owned());
    let path = config_dir.join("projects").join(slug(&project_dir)).join(format!("{id}.jsonl"));
    let file = std::fs::File::open(&path).ok()?;
    match first_directory(file) {
        Some(directory) if Path::new(&directory) != project_dir => None,
        _ => Some(path),
    }
}

fn first_directory(file: std::fs::File) -> Option<String> {
    #[derive(Deserialize)]
    struct Entry {
        cwd: Option<String>,
    }
    let mut lines = BufReader::new(file).take(CWD_SEARCH_BYTES);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        if let Ok(Entry { cwd: Some(cwd) }) = serde_json::from_slice(&line) {
            return Some(cwd);
        }
    }
}

/// The directories of the conversations used last, newest first. Names there cannot be turned back into paths, so the
/// newest file of each is read.
pub(in crate::claude) fn recent_directories(config_dir: &Path) -> Vec<String> {
    let mut projects = newest(&config_dir.join("projects"), |path| path.is_dir());
    projects.truncate(RECENT_MAX);
    let directory = |project: PathBuf| {
        let files = newest(&project, |path| path.extension().is_some_and(|extension| extension == "jsonl"));
        first_directory(std::fs::File::open(files.first()?).ok()?)
    };
    projects.into_iter().filter_map(directory).collect()
}

/// The entries of a directory by when they were changed, the newest first.
fn newest(directory: &Path, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().take(ENTRIES_MAX).flatten();
    let mut found: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| is_wanted(path))
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// A directory's name among Claude Code's projects.
pub(super) fn slug(path: &Path) -> String {
    let path = path.to_string_lossy();
    let name: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    // The program counts UTF-16 units: a character beyond them is two dashes there.
    let name: String = if path.is_ascii() {
        name
    } else {
        let unit = |unit: u16| char::from_u32(u32::from(unit)).filter(char::is_ascii_alphanumeric).unwrap_or('-');
        path.encode_utf16().map(unit).collect()
    };
    if name.len() <= SLUG_CHARS_MAX {
        return name;
    }
    let digest = path.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &name[..SLUG_CHARS_MAX], base36(digest.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_by_its_letters_and_digits() {
        assert_eq!(slug(Path::new("/home/dev/demo")), "-home-dev-demo");
        assert_eq!(slug(Path::new("/home/dev/my_app.v2")), "-home-dev-my-app-v2");
        assert_eq!(slug(Path::new("/é/😀")), "--- --".replace(' ', ""));
    }

    #[test]
    fn the_directories_used_last_are_read_from_the_newest_conversations() {
        let home = tempfile::tempdir().unwrap();
        for (at, (project, cwd)) in [("-old", "/old"), ("-new", "/new"), ("-odd", "")].into_iter().enumerate() {
            let directory = home.path().join("projects").join(project);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("notes.txt"), "not a conversation").unwrap();
            let lines = match cwd {
                "" => "nonsense\n".to_owned(),
                cwd => format!("{{\"type\":\"summary\"}}\n{{\"cwd\":\"{cwd}\"}}\n"),
            };
            std::fs::write(directory.join("a.jsonl"), lines).unwrap();
            let changed = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + at as u64);
            std::fs::File::open(&directory).unwrap().set_modified(changed).unwrap();
        }
        assert_eq!(recent_directories(home.path()), ["/new", "/old"]);
        assert!(recent_directories(&home.path().join("nowhere")).is_empty());
    }

    #[test]
    fn a_long_name_is_cut_and_distinguished_by_a_digest() {
        let long = format!("/{}", "a".repeat(300));
        let name = slug(Path::new(&long));
        assert!(name.starts_with(&format!("-{}-", "a".repeat(199))), "{name}");
        assert_ne!(name, slug(Path::new(&format!("{long}b"))));
        assert_eq!(base36(0), "0");
        assert_eq!(base36(i32::MIN.unsigned_abs()), "zik0zk");
    }
}
