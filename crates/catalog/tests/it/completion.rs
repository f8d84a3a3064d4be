//! Directory names while a path is typed.

use std::os::unix::fs::symlink;

use catalog::Catalog;

use crate::support::{Fixture, Home, fixture_program};

fn complete(catalog: &Catalog, prefix: &str) -> Vec<String> {
    catalog.complete_path(prefix).into_iter().map(|completion| completion.path).collect()
}

#[test]
fn directories_are_offered_and_files_are_not() {
    let home = Home::new();
    let code = home.directory("code");
    for name in ["beta", "alpha", ".hidden", "Alps", "alpine"] {
        home.directory(&format!("code/{name}"));
    }
    std::fs::write(format!("{code}/alphabet.txt"), "").unwrap();
    symlink(format!("{code}/beta"), format!("{code}/alias")).unwrap();
    symlink(format!("{code}/alphabet.txt"), format!("{code}/altered")).unwrap();
    symlink("nowhere", format!("{code}/alone")).unwrap();
    let catalog = home.open();
    let offered = |stem: &str| -> Vec<String> {
        let strip = |path: String| path.strip_prefix(&format!("{code}/")).unwrap().to_owned();
        complete(&catalog, &format!("{code}/{stem}")).into_iter().map(strip).collect()
    };
    assert_eq!(offered(""), ["alias/", "alpha/", "alpine/", "Alps/", "beta/"]);
    assert_eq!(offered("al"), ["alias/", "alpha/", "alpine/", "Alps/"], "exact case first");
    assert_eq!(offered("ALP"), ["alpha/", "alpine/", "Alps/"]);
    assert_eq!(offered("Al"), ["Alps/", "alias/", "alpha/", "alpine/"]);
    assert_eq!(offered("."), [".hidden/"]);
    assert_eq!(offered(".HID"), [".hidden/"]);
    assert!(offered("x").is_empty());
    assert_eq!(offered("../code/be"), ["../code/beta/"]);
}

#[tokio::test]
async fn what_is_a_project_already_is_marked_also_through_a_symlink() {
    let home = Home::new();
    let (one, _) = (home.directory("code/one"), home.directory("code/two"));
    symlink(&one, home.root().join("code/uno")).unwrap();
    let catalog = home.open();
    catalog.add_project(&one).await.unwrap();
    let marks: Vec<_> = catalog
        .complete_path(&format!("{}/code/", home.root().display()))
        .into_iter()
        .map(|completion| completion.is_project)
        .collect();
    assert_eq!(marks, [true, false, true]);
}

#[test]
fn a_tilde_is_understood_and_stays_in_the_answer() {
    let home = Home::new();
    home.directory("code/app");
    let mut command = std::process::Command::new(fixture_program());
    command.arg(home.data()).arg("serve").env("HOME", home.root());
    let mut fixture = Fixture::start(command);
    let mut paths = |prefix: &str| -> Vec<String> {
        let answer = fixture.ask(&format!("complete {prefix}"));
        answer.as_array().unwrap().iter().map(|offer| offer["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(""), ["~/code/", "~/data/"]);
    assert_eq!(paths("~"), ["~/code/", "~/data/"]);
    assert_eq!(paths("~/co"), ["~/code/"]);
    assert_eq!(paths("~/code/"), ["~/code/app/"]);
}

#[test]
fn at_most_fifty_are_offered_and_nonsense_offers_none() {
    let home = Home::new();
    for number in 0..60 {
        home.directory(&format!("many/{number:02}"));
    }
    let catalog = home.open();
    let offered = complete(&catalog, &format!("{}/many/", home.root().display()));
    assert_eq!(offered.len(), 50);
    assert!(offered[0].ends_with("/00/") && offered[49].ends_with("/49/"));
    for nonsense in ["relative", "a/b", "/no/such/place/", "/\0/", &format!("/{}", "x/".repeat(5000))] {
        assert!(complete(&catalog, nonsense).is_empty(), "{nonsense:?}");
    }
    assert!(complete(&catalog, "/").contains(&"/usr/".to_owned()));
}
