//! Opens files beneath a directory so that no link leads out of it, even one that appears between a check and its use.
//!
//! Paths come in relative to that directory and with every link resolved. So whatever link is met on the way was put
//! there since, and is refused. Linux checks that in one call, `openat2`; where there is none, each step is opened from
//! the one before it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use rustix::io::Errno;

/// Rights of what we make, less the user's umask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);
/// The kernel asks to try again when something was renamed while it looked.
#[cfg(target_os = "linux")]
const TRIES_MAX: usize = 16;

/// A descriptor of a directory that is only used to open what is in it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self(open(directory, DIRECTORY, Mode::empty())?))
    }

    /// Opens what exists. `path` is relative, and has neither links nor `..`.
    pub(super) fn existing(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        match self.in_one_call(path, flags) {
            // An old kernel, or a container that does not know the call and forbids it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
        self.step_by_step(path, flags)
    }

    /// The directory at `path`, made if it is not there, with those above it.
    pub(super) fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.existing(path, DIRECTORY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let mut directory = self.itself()?;
        for name in names(path)? {
            directory = match step(&directory, name, DIRECTORY) {
                Err(Errno::NOENT) => {
                    match mkdirat(&directory, name, DIRECTORY_MODE) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    step(&directory, name, DIRECTORY)?
                }
                opened => opened?,
            };
        }
        Ok(directory)
    }

    #[cfg(target_os = "linux")]
    fn in_one_call(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        use rustix::fs::{ResolveFlags, openat2};

        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let mut opened = Err(Errno::AGAIN);
        for _ in 0..TRIES_MAX {
            opened = openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        opened
    }

    fn step_by_step(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let names = names(path)?;
        let Some((last, above)) = names.split_last() else { return self.itself() };
        let mut directory = self.itself()?;
        for name in above {
            directory = step(&directory, name, DIRECTORY)?;
        }
        Ok(step(&directory, last, flags)?)
    }

    fn itself(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }
}

/// Opens one name in a directory, unless it is a link.
pub(super) fn step(directory: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(directory, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Was a link met where there should be none?
pub(super) fn is_link_met(error: &io::Error) -> bool {
    // `O_DIRECTORY` with `O_NOFOLLOW` reports a link as no directory; `openat2` reports `ELOOP`, or `EXDEV` of one
    // that leads out.
    matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EXDEV))
}

fn names(path: &Path) -> io::Result<Vec<&OsStr>> {
    let name = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    path.components().map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways, as the second is not used on the machines we test on.
    type Opener = fn(&Root, &Path, OFlags) -> io::Result<OwnedFd>;
    const OPENERS: [(&str, Opener); 2] = [("existing", Root::existing), ("step by step", Root::step_by_step)];

    #[test]
    fn what_is_beneath_is_opened_and_no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "inside").unwrap();
        fs::write(home.path().join("secret"), "outside").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("a/b/file", root.join("last")).unwrap();
        symlink(home.path(), root.join("up")).unwrap();
        let root = Root::open(&root).unwrap();
        for (name, opener) in OPENERS {
            let mut text = String::new();
            let file = opener(&root, Path::new("a/b/file"), OFlags::RDONLY).unwrap();
            fs::File::from(file).read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{name}");
            assert!(opener(&root, Path::new(""), DIRECTORY).is_ok(), "{name}");
            for refused in ["link/b/file", "last", "up/secret", "../secret", "/etc/passwd", "a/../../secret"] {
                assert!(opener(&root, Path::new(refused), OFlags::RDONLY).is_err(), "{name}: {refused}");
            }
        }
        assert!(root.directory(Path::new("up/new")).is_err());
        assert!(root.directory(Path::new("link/b/new")).is_err());
        assert!(!home.path().join("new").exists());
        root.directory(Path::new("a/x/y/z")).unwrap();
        assert!(home.path().join("project/a/x/y/z").is_dir());
    }
}
