//! Files an agent reads and writes through us, inside its session's directory and nowhere else.
//!
//! Symlinks are resolved before the check. Kept out: anything but regular files of text.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use agent_client_protocol_schema::v1 as acp;

/// The largest file that is read, whole or by lines.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why a file request was refused, in words for the agent.
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
    Io(#[from] io::Error),
}

/// Reads a file, or `limit` lines of it from `line` on, the first being 1.
pub(crate) fn read(request: &acp::ReadTextFileRequest, directory: &Path) -> Result<String, FileError> {
    let path = inside(&request.path, directory)?;
    let file = open(OpenOptions::new().read(true), &path)?;
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
    let path = inside(&request.path, directory)?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut file = open(OpenOptions::new().write(true).create(true), &path)?;
    file.set_len(0)?;
    file.write_all(request.content.as_bytes())?;
    Ok(())
}

/// Opens without following a link in the last place and without waiting for a pipe's other end.
fn open(options: &mut OpenOptions, path: &Path) -> Result<File, FileError> {
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(FileError::NotAFile) }
}

/// Where the path really leads, if that is inside. What does not exist yet is judged by what does.
fn inside(path: &Path, directory: &Path) -> Result<PathBuf, FileError> {
    if !path.is_absolute() {
        return Err(FileError::Relative);
    }
    let mut existing = path;
    let mut rest = Vec::new();
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
                rest.push(name);
                existing = parent;
            }
            Err(error) => return Err(error.into()),
        }
    };
    if !real.starts_with(directory) {
        return Err(FileError::Outside);
    }
    Ok(rest.into_iter().rev().fold(real, |path, name| path.join(name)))
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
