//! Files an agent reads and writes through us, inside its session's directory and nowhere else.
//!
//! Links are resolved first, and the path that results is opened beneath the directory (`beneath`), so that a
//! link swapped in meanwhile leads nowhere. Kept out: anything but regular files of text. How a file gets its new
//! content is in `replace`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use agent_client_protocol_schema::v1 as acp;
use rustix::fs::OFlags;

use super::open_beneath::{self, Root};
use super::replace_file::replace;

/// The largest file that is read, whole or by lines.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why a file request was refused, as the agent reads it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("the path must be absolute")]
    Relative,
    #[error("the path is outside of the session's directory")]
    Outside,
    #[error("not a regular file")]
    NotAFile,
    #[error("the file is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        if open_beneath::is_link_met(&error) { Self::Outside } else { Self::Io(error) }
    }
}

/// Reads a file, or `limit` lines of it from `line` on, the first being 1.
pub(crate) fn read(request: &acp::ReadTextFileRequest, directory: &Path) -> Result<String, FileError> {
    let (root, path) = beneath(&request.path, directory)?;
    // Without waiting for the other end of a pipe.
    let file = File::from(root.existing(&path, OFlags::RDONLY | OFlags::NONBLOCK)?);
    if !file.metadata()?.is_file() {
        return Err(FileError::NotAFile);
    }
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLarge);
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    if request.line.is_none() && request.limit.is_none() {
        return Ok(text);
    }
    let skipped = request.line.unwrap_or(1).saturating_sub(1) as usize;
    let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
    Ok(text.split_inclusive('\n').skip(skipped).take(limit).collect())
}

/// Writes a file whole, with the directories it needs.
pub(crate) fn write(request: &acp::WriteTextFileRequest, directory: &Path) -> Result<(), FileError> {
    let (root, path) = beneath(&request.path, directory)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(FileError::NotAFile) };
    Ok(replace(root.directory(parent)?, name, request.content.as_bytes())?)
}

/// The session's directory, and where the path really leads from there.
fn beneath(path: &Path, directory: &Path) -> Result<(Root, PathBuf), FileError> {
    let path = inside(path, directory)?;
    let relative = path.strip_prefix(directory).map_err(|_| FileError::Outside)?.to_owned();
    Ok((Root::open(directory)?, relative))
}

/// Where the path really leads, if that is inside. What does not exist yet is judged by what does.
fn inside(path: &Path, directory: &Path) -> Result<PathBuf, FileError> {
    if !path.is_absolute() {
        return Err(FileError::Relative);
    }
    let mut existing = path;
    let mut missing = Vec::new();
    let real = loop {
        match std::fs::canonicalize(existing) {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link that leads nowhere would be followed when it is written to.
                if existing.symlink_metadata().is_ok() {
                    return Err(FileError::Outside);
                }
                let (Some(parent), Some(Component::Normal(name))) =
                    (existing.parent(), existing.components().next_back())
                else {
                    return Err(FileError::Outside);
                };
                missing.push(name);
                existing = parent;
            }
            Err(error) => return Err(error.into()),
        }
    };
    if !real.starts_with(directory) {
        return Err(FileError::Outside);
    }
    Ok(missing.into_iter().rev().fold(real, |path, name| path.join(name)))
}

/// The directory a command may run in.
pub(crate) fn working_directory(wanted: Option<&Path>, directory: &Path) -> Result<PathBuf, FileError> {
    wanted.map_or_else(|| Ok(directory.to_owned()), |wanted| inside(wanted, directory))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn read_at(path: &Path, directory: &Path) -> Result<String, FileError> {
        read(&acp::ReadTextFileRequest::new("s", path), directory)
    }

    fn write_at(path: &Path, directory: &Path) -> Result<(), FileError> {
        write(&acp::WriteTextFileRequest::new("s", path, "new"), directory)
    }

    #[test]
    fn files_inside_are_read_and_written_with_the_directories_they_need() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().canonicalize().unwrap();
        let path = directory.join("a/b/c.txt");
        write_at(&path, &directory).unwrap();
        assert_eq!(read_at(&path, &directory).unwrap(), "new");
        std::fs::write(&path, "1\n2\n3\n4").unwrap();
        let part = acp::ReadTextFileRequest::new("s", &path).line(2).limit(2);
        assert_eq!(read(&part, &directory).unwrap(), "2\n3\n");
        assert_eq!(read(&acp::ReadTextFileRequest::new("s", &path).line(9), &directory).unwrap(), "");
        write_at(&path, &directory).unwrap();
        assert_eq!(read_at(&path, &directory).unwrap(), "new");
    }

    #[test]
    fn no_path_leads_out_of_the_sessions_directory() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let directory = home.join("project");
        std::fs::create_dir(&directory).unwrap();
        std::fs::create_dir(home.join("project-secret")).unwrap();
        std::fs::write(home.join("secret"), "x").unwrap();
        std::fs::write(home.join("project-secret/secret"), "x").unwrap();
        symlink(home.join("secret"), directory.join("link")).unwrap();
        symlink(&home, directory.join("up")).unwrap();
        symlink(home.join("not-yet"), directory.join("dangling")).unwrap();
        let inside = |path: &str| directory.join(path);
        let paths = [
            home.join("secret"),
            home.join("project-secret/secret"),
            inside("../secret"),
            inside("link"),
            inside("up/secret"),
            inside("up/new"),
            inside("dangling"),
            inside("missing/../../secret"),
            inside("missing/../../../new"),
            PathBuf::from("/etc/passwd"),
        ];
        for path in paths {
            assert!(read_at(&path, &directory).is_err(), "{path:?} was read");
            assert!(write_at(&path, &directory).is_err(), "{path:?} was written");
        }
        assert!(matches!(read_at(Path::new("secret"), &directory), Err(FileError::Relative)));
        assert!(!home.join("not-yet").exists() && !home.join("new").exists());
        assert_eq!(std::fs::read_to_string(home.join("secret")).unwrap(), "x");
    }

    #[test]
    fn links_that_stay_inside_are_followed_and_what_they_name_is_written() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().canonicalize().unwrap();
        std::fs::create_dir(directory.join("real")).unwrap();
        std::fs::write(directory.join("real/file"), "old").unwrap();
        symlink(directory.join("real"), directory.join("absolute")).unwrap();
        symlink("real/file", directory.join("relative")).unwrap();
        for path in ["absolute/file", "relative"].map(|path| directory.join(path)) {
            std::fs::write(directory.join("real/file"), "old").unwrap();
            assert_eq!(read_at(&path, &directory).unwrap(), "old");
            write_at(&path, &directory).unwrap();
            assert_eq!(std::fs::read_to_string(directory.join("real/file")).unwrap(), "new");
        }
        assert!(directory.join("relative").is_symlink() && directory.join("absolute").is_symlink());
        write_at(&directory.join("absolute/other"), &directory).unwrap();
        assert!(directory.join("real/other").is_file());
    }

    /// A directory of the project is swapped for a link that leads out, and back, as fast as it can be.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_swapped_in_between_the_check_and_the_use_leads_nowhere() {
        use std::sync::atomic::{AtomicBool, Ordering};

        use rustix::fs::{CWD, RenameFlags, renameat_with};

        const READS: usize = 20_000;
        /// Fewer: each waits for the disk.
        const WRITES: usize = 200;
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let (directory, outside, link) = (home.join("project"), home.join("outside"), home.join("link"));
        let swapped = directory.join("swapped");
        std::fs::create_dir_all(&swapped).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(swapped.join("file"), "new").unwrap();
        std::fs::write(outside.join("file"), "secret").unwrap();
        symlink(&outside, &link).unwrap();
        let swapping = AtomicBool::new(true);
        let (mut read, mut refused) = (0, 0);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while swapping.load(Ordering::Relaxed) {
                    renameat_with(CWD, &swapped, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for number in 0..READS {
                match read_at(&swapped.join("file"), &directory) {
                    Ok(text) if text == "new" => read += 1,
                    Ok(_) => break,
                    Err(_) => refused += 1,
                }
                if number % (READS / WRITES) == 0 {
                    drop(write_at(&swapped.join(format!("new-{}", number % 7)), &directory));
                    drop(write_at(&swapped.join("file"), &directory));
                }
            }
            swapping.store(false, Ordering::Relaxed);
        });
        assert_eq!(read + refused, READS, "what is outside was read");
        assert!(read > 0 && refused > 0, "{read} read, {refused} refused: nothing was swapped");
        assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "secret", "what is outside was written");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "something was made outside");
    }

    #[test]
    fn what_is_not_a_file_of_text_is_refused_without_waiting() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().canonicalize().unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.join("pipe"), rustix::fs::Mode::from_bits_truncate(0o600))
            .unwrap();
        assert!(matches!(read_at(&directory.join("pipe"), &directory), Err(FileError::NotAFile)));
        assert!(read_at(&directory, &directory).is_err());
        std::fs::write(directory.join("binary"), [0xff, 0xfe]).unwrap();
        assert!(read_at(&directory.join("binary"), &directory).is_err());
    }
}
