//! Gives a file new content so that the old one is never lost: not by a full disk, and not by a crash in the midst of
//! it.
//!
//! The new content is written to a file beside it, which then takes its name, with the mode and the owner of the old
//! one. Extended attributes are not kept.
//!
//! A file is written in place where that would change more than its content:
//! - it has several names (hard links), which must go on naming one file;
//! - its owner or group cannot be given to a new file;
//! - nothing can be created in its directory, or nothing renamed over it (a mount point, a sticky directory).
//!
//! Then the old content is put back if the new one does not fit.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::open_beneath::step;

/// A new file has what the user's umask leaves of this.
const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Until it has the mode of the file it replaces, nobody else may read what may be a secret.
const PRIVATE_MODE: Mode = Mode::from_raw_mode(0o600);

/// Writes the file `name` in `directory`. The file is opened for writing first, so that one the user has made read-only
/// is refused, although it could be replaced.
pub(super) fn replace(directory: impl AsFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let directory = directory.as_fd();
    let present = match step(directory, name, OFlags::WRONLY | OFlags::NONBLOCK) {
        Ok(file) => Some(fstat(&file)?),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(present) = present else {
        return Beside::create(directory, NEW_FILE_MODE)?.fill(content)?.take_name(name);
    };
    if !FileType::from_raw_mode(present.st_mode).is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let in_place = || write_in_place(File::from(step(directory, name, OFlags::RDWR | OFlags::NONBLOCK)?), content);
    if present.st_nlink > 1 {
        return in_place();
    }
    let beside = match Beside::create(directory, PRIVATE_MODE) {
        Ok(beside) => beside,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return in_place(),
        Err(error) => return Err(error),
    };
    if beside.be_like(&present).is_err() {
        drop(beside);
        return in_place();
    }
    match beside.fill(content)?.take_name(name) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EPERM | libc::EACCES)) => in_place(),
        taken => taken,
    }
}

/// A file with a name nobody knows, in the directory of the one it may become. Removed if it does not.
struct Beside<D: AsFd> {
    directory: D,
    name: String,
    file: File,
    took_name: bool,
}

impl<D: AsFd> Beside<D> {
    fn create(directory: D, mode: Mode) -> io::Result<Self> {
        let name = format!(".liminal-{}.tmp", uuid::Uuid::new_v4());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&directory, &name, flags, mode)?);
        Ok(Self { directory, name, file, took_name: false })
    }

    /// The owner first: giving a file away can take rights from its mode.
    fn be_like(&self, present: &Stat) -> io::Result<()> {
        let own = fstat(&self.file)?;
        if (own.st_uid, own.st_gid) != (present.st_uid, present.st_gid) {
            fchown(&self.file, Some(Uid::from_raw(present.st_uid)), Some(Gid::from_raw(present.st_gid)))?;
        }
        fchmod(&self.file, Mode::from_raw_mode(present.st_mode & 0o7777))?;
        Ok(())
    }

    /// Some disks report only now that they are full.
    fn fill(mut self, content: &[u8]) -> io::Result<Self> {
        self.file.write_all(content)?;
        self.file.sync_all()?;
        Ok(self)
    }

    fn take_name(mut self, name: &OsStr) -> io::Result<()> {
        renameat(&self.directory, &self.name, &self.directory, name)?;
        self.took_name = true;
        Ok(())
    }
}

impl<D: AsFd> Drop for Beside<D> {
    fn drop(&mut self) {
        if !self.took_name {
            let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// The old content's place on the disk is not given up before the new one is there, so that it can be put back.
fn write_in_place(mut file: File, content: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut old = Vec::new();
    (&file).take(content.len() as u64).read_to_end(&mut old)?;
    file.rewind()?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        file.rewind().and_then(|()| file.write_all(&old)).and_then(|()| file.set_len(length))?;
        return Err(error);
    }
    file.set_len(content.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::*;

    fn replace_at(path: &Path, content: &str) -> io::Result<()> {
        let directory = File::open(path.parent().unwrap()).unwrap();
        replace(&directory, path.file_name().unwrap(), content.as_bytes())
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_keeps_its_mode_and_nothing_is_left_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.sh");
        for mode in [0o755, 0o640, 0o600, 0o4711] {
            fs::write(&path, "old and longer").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            replace_at(&path, "new").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "new");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode, "{mode:o}");
            fs::remove_file(&path).unwrap();
        }
        replace_at(&path, "first").unwrap();
        let plain = home.path().join("plain");
        File::create(&plain).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain), "a new file has the rights every new file has");
        assert_eq!(names(home.path()), ["plain", "run.sh"]);
    }

    #[test]
    fn a_file_is_replaced_whole_so_that_who_reads_it_meanwhile_sees_the_old_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, "old").unwrap();
        let reader = File::open(&path).unwrap();
        replace_at(&path, "new").unwrap();
        assert_eq!(io::read_to_string(reader).unwrap(), "old");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_file_with_two_names_stays_one_file() {
        let home = tempfile::tempdir().unwrap();
        let (path, other) = (home.path().join("file"), home.path().join("other"));
        fs::write(&path, "old and longer").unwrap();
        fs::hard_link(&path, &other).unwrap();
        replace_at(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().ino(), fs::metadata(&other).unwrap().ino());
    }
}
