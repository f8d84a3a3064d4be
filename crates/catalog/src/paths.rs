//! Directories as people type them: `~`, `..`, trailing slashes and symlinks become one canonical path, or an error.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::ProjectId;
use uuid::Uuid;

use crate::error::CatalogError;

/// Longer than any path a system takes; what is longer is not looked up.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// The canonical path of a directory that is there and can be read. May wait for a slow disk.
pub(crate) fn resolve(typed: &str) -> Result<String, CatalogError> {
    let invalid = || CatalogError::PathInvalid(typed.into());
    // A name may end in a blank; usually the blank came along with the paste.
    readable_directory(typed).or_else(|| readable_directory(typed.trim())).ok_or_else(invalid)
}

fn readable_directory(typed: &str) -> Option<String> {
    if typed.len() > PATH_BYTES_MAX {
        return None;
    }
    let canonical = fs::canonicalize(expand(typed)?).ok()?;
    // Opening is the one test that covers missing, not a directory and not readable.
    fs::read_dir(&canonical).ok()?;
    canonical.into_os_string().into_string().ok()
}

/// An absolute path, with `~` replaced by the home directory. A relative one means nothing here: relative to what?
pub(crate) fn expand(typed: &str) -> Option<PathBuf> {
    let path = match typed.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            std::env::home_dir()?.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(typed),
    };
    path.is_absolute().then_some(path)
}

/// The same directory has the same id for ever, so that one added again finds its sessions.
#[expect(clippy::expect_used, reason = "hexadecimal digits and hyphens are what an id may hold")]
pub(crate) fn project_id(canonical: &str) -> ProjectId {
    let uuid = Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("file://{canonical}").as_bytes());
    ProjectId::parse(uuid.to_string()).expect("a UUID is an id")
}

/// The last component; the root is called by its path.
pub(crate) fn project_name(canonical: &str) -> String {
    Path::new(canonical).file_name().and_then(|name| name.to_str()).unwrap_or(canonical).to_owned()
}
