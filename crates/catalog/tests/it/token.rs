//! The secret.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::Home;

#[test]
fn a_token_is_made_once_is_private_and_has_256_bits() {
    let (home, other) = (Home::new(), Home::new());
    let token = home.open().token().unwrap();
    assert_eq!(token.len(), 64);
    assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(fs::metadata(home.data().join("token")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.open().token().unwrap(), token, "the same after a restart");
    assert_ne!(other.open().token().unwrap(), token, "another in another home");
}

#[test]
fn a_token_that_others_could_read_is_made_private_again() {
    let home = Home::new();
    let token = home.open().token().unwrap();
    let path = home.data().join("token");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(home.open().token().unwrap(), token);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_empty_or_broken_token_file_never_opens_the_door() {
    for broken in ["", "\n", "abc", &"g".repeat(64)] {
        let home = Home::new();
        home.write("token", broken);
        let token = home.open().token().unwrap();
        assert_eq!(token.len(), 64);
        assert_ne!(token, broken);
        assert_eq!(home.read(&home.only("token.damaged-")), broken);
    }
}
