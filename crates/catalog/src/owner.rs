//! Whose a directory is, and whether others may write to it.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::error::CatalogError;

const WRITABLE_BY_OTHERS: u32 = 0o022;
const PERMISSION_BITS: u32 = 0o7777;
const USERS_FILE: &str = "/etc/passwd";

/// A user of this machine, as people know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName {
    uid: u32,
    name: Option<String>,
}

impl UserName {
    pub(crate) fn of(uid: u32) -> Self {
        let users = fs::read_to_string(USERS_FILE).unwrap_or_default();
        Self { uid, name: name_in(&users, uid) }
    }

    /// For a sentence that names the number already.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("user {}", self.uid))
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (user id {})", self.uid),
            None => write!(f, "the user with id {}", self.uid),
        }
    }
}

/// May `user` trust a directory of this owner and mode?
pub(crate) fn check(dir: &Path, owner: u32, mode: u32, user: u32) -> Result<(), CatalogError> {
    if owner != user {
        let (owner, user) = (UserName::of(owner), UserName::of(user));
        return Err(CatalogError::OtherOwner { dir: dir.to_owned(), owner, user });
    }
    match mode & WRITABLE_BY_OTHERS {
        0 => Ok(()),
        _ => Err(CatalogError::WritableByOthers { dir: dir.to_owned(), mode: mode & PERMISSION_BITS }),
    }
}

fn name_in(users: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_trusted_when_it_is_ours_and_nobody_else_may_write_to_it() {
        let dir = Path::new("/data");
        for mode in [0o40700, 0o40750, 0o40755] {
            assert!(check(dir, 1000, mode, 1000).is_ok(), "{mode:o}");
        }
        for mode in [0o40770, 0o40777, 0o40702, 0o40720, 0o41777] {
            let refused = check(dir, 1000, mode, 1000).unwrap_err();
            assert!(matches!(refused, CatalogError::WritableByOthers { .. }), "{mode:o}: {refused}");
            assert_eq!(refused.advice().unwrap(), "Take that right away from them: chmod go-w '/data'");
        }
        // Root too: what it starts there would run as root, on the word of that user.
        for user in [0, 1001] {
            let refused = check(dir, 1000, 0o40700, user).unwrap_err();
            assert!(matches!(refused, CatalogError::OtherOwner { .. }), "{user}: {refused}");
        }
    }

    #[test]
    fn users_are_named_as_far_as_the_machine_knows_them() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\nbroken\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(users, 100), None);
        assert_eq!(UserName { uid: 7, name: None }.to_string(), "the user with id 7");
    }
}
