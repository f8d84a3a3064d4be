//! The secret.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::Home;

/// Where nothing is out of the ordinary.
fn token(home: &Home) -> String {
    let mut notices = Vec::new();
    let token = home.open().token(&mut notices).unwrap();
    assert_eq!(notices, Vec::<String>::new());
    token
}

#[test]
fn a_token_is_made_once_is_private_and_has_256_bits() {
    let (home, other) = (Home::new(), Home::new());
    let token = token(&home);
    assert_eq!(token.len(), 64);
    assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(fs::metadata(home.data().join("token")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(self::token(&home), token, "the same after a restart");
    assert_ne!(self::token(&other), token, "another in another home");
}

#[test]
fn a_token_that_others_could_read_is_made_private_again() {
    let home = Home::new();
    let token = token(&home);
    let path = home.data().join("token");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let mut notices = Vec::new();
    assert_eq!(home.open().token(&mut notices).unwrap(), token);
    assert!(notices[0].contains("could be read by other users"), "{notices:?}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_empty_or_broken_token_file_never_opens_the_door_and_is_reported() {
    for broken in ["", "\n", "abc", &"g".repeat(64), &"a".repeat(10_000)] {
        let home = Home::new();
        home.write("token", broken);
        let mut notices = Vec::new();
        let token = home.open().token(&mut notices).unwrap();
        assert_eq!(token.len(), 64);
        assert_ne!(token, broken);
        let aside = home.one_named("token.damaged-");
        assert_eq!(home.read(&aside), broken);
        assert!(notices.len() == 1 && notices[0].contains(&aside), "{notices:?}");
        assert_eq!(self::token(&home), token, "the new one stays, and nothing more is reported");
    }
}
