//! Which git branch a directory is on, read from git's own files. No git program is needed, and none is started.
//!
//! The files belong to a project, so an agent may have written them: reads are bounded, only regular files are opened, and
//! what is no plausible name is no branch.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// `HEAD` and the `.git` file of a worktree hold one line with a path or a reference in it.
const FILE_BYTES_MAX: u64 = 8 * 1024;
/// Directories looked at from the project upwards; deeper paths than this are not met in practice.
const ANCESTORS_MAX: usize = 64;
/// A longer name does not fit any header; git itself stops at 255 bytes for one part of it.
const BRANCH_CHARACTERS_MAX: usize = 255;
/// As many digits as `git log --oneline` shows.
const SHORT_HASH_DIGITS: usize = 7;

/// The branch checked out in the repository that `directory` lies in, or the short hash of a detached `HEAD`. `None` when
/// there is no repository or its files cannot be understood. Waits for the disk: call it where blocking is allowed.
pub fn git_branch(directory: &Path) -> Option<String> {
    let git = directory.ancestors().take(ANCESTORS_MAX).find_map(git_directory)?;
    let head = read_line(&git.join("HEAD"))?;
    let branch = match head.strip_prefix("ref:") {
        Some(reference) => {
            let reference = reference.trim();
            reference.strip_prefix("refs/heads/").or_else(|| reference.strip_prefix("refs/")).unwrap_or(reference)
        }
        None if is_hash(&head) => &head[..SHORT_HASH_DIGITS],
        None => return None,
    };
    let is_name = !branch.is_empty()
        && branch.chars().count() <= BRANCH_CHARACTERS_MAX
        && !branch.contains(|letter: char| letter.is_control() || letter == ' ');
    is_name.then(|| branch.to_owned())
}

/// Whether a repository begins in exactly this directory.
pub(crate) fn is_repository(directory: &Path) -> bool {
    std::fs::symlink_metadata(directory.join(".git")).is_ok()
}

/// Where the repository that begins in `directory` has its files: `.git`, or where the file `.git` of a worktree points.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let target = read_line(&git)?;
    let target = target.strip_prefix("gitdir:")?.trim();
    // A relative path counts from the directory the file is in; joining an absolute one replaces it.
    (!target.is_empty()).then(|| directory.join(target))
}

/// The first line of a small regular file. A pipe under this name would keep us waiting for ever, so it is not opened.
fn read_line(path: &Path) -> Option<String> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.lines().next().map(|line| line.trim_end().to_owned())
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn repository(head: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(".git")).unwrap();
        fs::write(directory.path().join(".git/HEAD"), head).unwrap();
        directory
    }

    #[track_caller]
    fn check(head: &str, branch: Option<&str>) {
        assert_eq!(git_branch(repository(head).path()).as_deref(), branch, "{head:?}");
    }

    #[test]
    fn the_branch_is_what_head_refers_to_and_a_detached_head_is_its_short_hash() {
        check("ref: refs/heads/main\n", Some("main"));
        check("ref: refs/heads/feature/a-b\r\n", Some("feature/a-b"));
        check("ref: refs/remotes/origin/main", Some("remotes/origin/main"));
        check("0123456789abcdef0123456789abcdef01234567\n", Some("0123456"));
        check(&"a".repeat(64), Some("aaaaaaa"));
    }

    #[test]
    fn what_is_no_name_is_no_branch() {
        check("", None);
        check("ref: ", None);
        check("ref: refs/heads/two words", None);
        check("ref: refs/heads/bell\u{7}", None);
        check("0123456\n", None);
        check(&format!("ref: refs/heads/{}", "x".repeat(300)), None);
        check(&"x".repeat(100_000), None);
    }

    #[test]
    fn a_directory_inside_a_repository_is_on_its_branch() {
        let directory = repository("ref: refs/heads/main\n");
        let inner = directory.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(git_branch(&inner).as_deref(), Some("main"));
    }

    #[test]
    fn a_worktree_is_on_its_own_branch() {
        let main = repository("ref: refs/heads/main\n");
        let own = main.path().join(".git/worktrees/side");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/side\n").unwrap();
        for target in [own.display().to_string(), "../.git/worktrees/side".to_owned()] {
            let side = main.path().join("side");
            fs::create_dir_all(&side).unwrap();
            fs::write(side.join(".git"), format!("gitdir: {target}\n")).unwrap();
            assert_eq!(git_branch(&side).as_deref(), Some("side"), "{target}");
        }
    }

    #[test]
    fn without_a_repository_there_is_no_branch() {
        let directory = tempfile::tempdir().unwrap();
        let damaged = directory.path().join("damaged");
        fs::create_dir(&damaged).unwrap();
        fs::write(damaged.join(".git"), "nonsense").unwrap();
        assert_eq!(git_directory(&damaged), None);
        fs::create_dir(directory.path().join(".git")).unwrap();
        assert_eq!(git_branch(directory.path()), None);
    }
}
