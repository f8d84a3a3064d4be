use tempfile::TempDir;

use super::*;

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self, secret: &str) -> Browsers {
        let catalog = Catalog::open(&self.0.path().join("data")).unwrap().catalog;
        let mut notices = Vec::new();
        let browsers = Browsers::open(catalog, Secret::new(secret), &mut notices).unwrap();
        assert_eq!(notices, Vec::<String>::new());
        browsers
    }

    fn file(&self) -> String {
        std::fs::read_to_string(self.0.path().join("data/browsers.json")).unwrap()
    }
}

#[tokio::test]
async fn a_credential_is_valid_also_after_a_restart_and_only_its_hash_is_kept() {
    let home = Home::new();
    let browsers = home.open("secret");
    let (one, other) = (
        browsers.authorize("Firefox on Linux".into()).await.unwrap(),
        browsers.authorize("curl".into()).await.unwrap(),
    );
    assert_ne!(one, other);
    drop(browsers);
    let browsers = home.open("secret");
    let (first, second) = (browsers.admit(&one).unwrap(), browsers.admit(&other).unwrap());
    assert_ne!(first.id, second.id);
    let listed = browsers.list(Some(&first.id));
    assert_eq!(listed.iter().map(|browser| browser.label.as_str()).collect::<Vec<_>>(), ["Firefox on Linux", "curl"]);
    assert_eq!(listed.iter().map(|browser| browser.is_current).collect::<Vec<_>>(), [true, false]);
    let kept = home.file();
    for text in [&one[PREFIX.len()..], &other[PREFIX.len()..], "\"secret\": \"secret\""] {
        assert!(!kept.contains(text), "{text} is in {kept}");
    }
}

#[tokio::test]
async fn only_the_whole_credential_is_valid() {
    let home = Home::new();
    let browsers = home.open("secret");
    let credential = browsers.authorize("curl".into()).await.unwrap();
    let hash = browsers.state().known[0].record.hash.clone();
    for wrong in [
        "",
        PREFIX,
        &credential[1..],
        &credential[PREFIX.len()..],
        &credential[..credential.len() - 1],
        &format!("{credential}0"),
        &format!("{PREFIX}{hash}"),
        &credential.to_uppercase(),
        "secret",
    ] {
        assert!(browsers.admit(wrong).is_none(), "{wrong}");
    }
}

#[tokio::test]
async fn a_new_secret_invalidates_every_credential() {
    let home = Home::new();
    let credential = home.open("secret").authorize("curl".into()).await.unwrap();
    let browsers = home.open("another");
    assert!(browsers.admit(&credential).is_none() && browsers.list(None).is_empty());
    browsers.authorize("curl".into()).await.unwrap();
    drop(browsers);
    assert!(home.open("secret").admit(&credential).is_none(), "nor when the old secret comes back");
}

#[tokio::test]
async fn a_list_that_names_this_secret_but_was_made_with_another_authorizes_no_browser() {
    let home = Home::new();
    let credential = home.open("secret").authorize("curl".into()).await.unwrap();
    let forged = home.file().replace(&fingerprint(&Secret::new("secret")), &fingerprint(&Secret::new("another")));
    std::fs::write(home.0.path().join("data/browsers.json"), forged).unwrap();
    let browsers = home.open("another");
    assert_eq!(browsers.list(None).len(), 1);
    assert!(browsers.admit(&credential).is_none());
}

#[tokio::test]
async fn a_revoked_browser_loses_access_at_once_and_for_good() {
    let home = Home::new();
    let browsers = home.open("secret");
    let (gone, stays) =
        (browsers.authorize("one".into()).await.unwrap(), browsers.authorize("two".into()).await.unwrap());
    let window = browsers.admit(&gone).unwrap();
    let other = browsers.admit(&stays).unwrap();
    assert_eq!(browsers.revoke(|id| id == window.id).await.unwrap(), std::slice::from_ref(&window.id));
    assert!(window.revoked.is_cancelled() && !other.revoked.is_cancelled());
    assert!(browsers.admit(&gone).is_none() && browsers.admit(&stays).is_some());
    assert_eq!(browsers.revoke(|id| id == window.id).await.unwrap(), Vec::<String>::new());
    drop((browsers, window));
    let browsers = home.open("secret");
    assert!(browsers.admit(&gone).is_none() && browsers.admit(&stays).is_some());
    assert_eq!(browsers.revoke(|_| true).await.unwrap().len(), 1);
    assert!(browsers.admit(&stays).is_none());
}

#[tokio::test]
async fn a_revocation_that_cannot_be_saved_lasts_for_this_run_and_returns_an_error() {
    let home = Home::new();
    let browsers = home.open("secret");
    let credential = browsers.authorize("one".into()).await.unwrap();
    // A directory in the file's place can be replaced by nobody, not even by root.
    let file = home.0.path().join("data/browsers.json");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir_all(file.join("in the way")).unwrap();
    assert!(browsers.revoke(|_| true).await.is_err());
    assert!(browsers.admit(&credential).is_none());
    std::fs::remove_dir_all(&file).unwrap();
    browsers.save().await.unwrap();
    drop(browsers);
    assert!(home.open("secret").list(None).is_empty(), "it was saved as soon as it could be");
}

#[tokio::test]
async fn beyond_the_limit_the_one_unused_for_longest_is_removed_and_never_one_in_use() {
    let home = Home::new();
    let browsers = home.open("secret");
    let mut credentials = Vec::new();
    for _ in 0..BROWSERS_MAX {
        credentials.push(browsers.authorize("one".into()).await.unwrap());
    }
    for (age, known) in browsers.state().known.iter_mut().enumerate() {
        known.record.last_used_at = Timestamp::from_unix_ms(i64::try_from(age).unwrap());
    }
    // The oldest has a window open.
    let window = browsers.state().known[0].access.clone();
    credentials.push(browsers.authorize("one more".into()).await.unwrap());
    assert_eq!(browsers.list(None).len(), BROWSERS_MAX);
    assert!(!window.revoked.is_cancelled() && browsers.admit(&credentials[0]).is_some());
    assert!(browsers.admit(&credentials[1]).is_none());
    assert!(credentials[2..].iter().all(|credential| browsers.admit(credential).is_some()));
}

#[tokio::test]
async fn the_time_of_last_use_is_saved_later_and_at_the_end() {
    let home = Home::new();
    let browsers = home.open("secret");
    let credential = browsers.authorize("one".into()).await.unwrap();
    browsers.state().known[0].record.last_used_at = Timestamp::from_unix_ms(0);
    browsers.state().is_saved = false;
    browsers.save().await.unwrap();
    let before = home.file();
    assert!(before.contains("1970"));
    drop(browsers.admit(&credential));
    assert_eq!(home.file(), before, "a request does not wait for the disk");
    let stop = CancellationToken::new();
    stop.cancel();
    browsers.keep_saved(&stop).await;
    assert!(!home.file().contains("1970"));
}
