//! Adding and removing directories.

use std::os::unix::fs::symlink;

use catalog::CatalogError;
use protocol::ErrorCode;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Fixture, Home, project_id};

#[tokio::test]
async fn tc_1_1a_projects_are_listed_in_the_order_added_also_after_a_restart() {
    let home = Home::new();
    let catalog = home.open();
    for name in ["zebra", "apple", "mango"] {
        catalog.add_project(&home.directory(name)).await.unwrap();
    }
    let names = |catalog: &catalog::Catalog| -> Vec<String> {
        catalog.projects().into_iter().map(|project| project.name).collect()
    };
    assert_eq!(names(&catalog), ["zebra", "apple", "mango"]);
    drop(catalog);
    assert_eq!(names(&home.open()), ["zebra", "apple", "mango"]);
}

#[tokio::test]
async fn tc_1_1b_a_new_home_has_no_projects() {
    assert!(Home::new().open().projects().is_empty());
}

#[tokio::test]
async fn tc_1_2a_a_directory_that_is_there_is_added_by_its_canonical_path() {
    let home = Home::new();
    let path = home.directory("code/my app");
    let catalog = home.open();
    let project = catalog.add_project(&path).await.unwrap();
    assert_eq!((project.path.as_str(), project.name.as_str()), (path.as_str(), "my app"));
    assert_eq!(catalog.projects(), std::slice::from_ref(&project));
    assert_eq!(catalog.project(&project.id), Some(project.clone()));
    let file = home.json("projects.json");
    assert_eq!(file["version"], 1);
    assert_eq!(file["projects"][0], serde_json::to_value(&project).unwrap());
}

#[tokio::test]
async fn tc_1_2b_what_is_missing_relative_or_no_directory_is_refused_and_nothing_is_added() {
    let home = Home::new();
    let file = format!("{}/file", home.directory("code"));
    std::fs::write(&file, "").unwrap();
    let catalog = home.open();
    let missing = format!("{}/missing", home.root().display());
    let long = format!("/{}", "x".repeat(10_000));
    for bad in [missing.as_str(), file.as_str(), "", "   ", "code", "./code", "~nobody/code", "/a\0b", &long] {
        let error = catalog.add_project(bad).await.unwrap_err();
        assert!(matches!(error, CatalogError::PathInvalid(_)), "{bad:?}: {error}");
        assert_eq!(error.code(), ErrorCode::ProjectPathInvalid);
    }
    assert!(catalog.projects().is_empty());
    assert!(!home.names().contains(&"projects.json".to_owned()), "a refused change writes nothing");
}

#[tokio::test]
async fn tc_1_2d_the_same_directory_is_known_by_any_of_its_names() {
    let home = Home::new();
    let path = home.directory("code/app");
    let link = home.root().join("link");
    symlink(&path, &link).unwrap();
    let catalog = home.open();
    catalog.add_project(&format!("{path}/")).await.unwrap();
    let root = home.root().display().to_string();
    for same in [
        path.clone(),
        format!("{path}///"),
        format!("{root}/code/../code/./app"),
        link.display().to_string(),
        format!("{root}/link/"),
        format!(" {path}\n"),
    ] {
        let error = catalog.add_project(&same).await.unwrap_err();
        assert!(matches!(error, CatalogError::Duplicate(_)), "{same:?}: {error}");
        assert_eq!(error.code(), ErrorCode::ProjectDuplicate);
    }
    assert_eq!(catalog.projects().len(), 1);
}

#[test]
fn tc_1_2d_a_tilde_is_the_home_directory() {
    let home = Home::new();
    let path = home.directory("code");
    let mut command = std::process::Command::new(crate::support::fixture_program());
    command.arg(home.data()).arg("serve").env("HOME", home.root());
    let mut fixture = Fixture::start(command);
    assert_eq!(fixture.ask("add ~/code")["ok"]["path"], path);
    assert_eq!(fixture.ask("add ~/code/")["error"], "PROJECT_DUPLICATE");
    assert_eq!(fixture.ask(&format!("add {path}"))["error"], "PROJECT_DUPLICATE");
    assert_eq!(fixture.ask("add ~")["ok"]["path"], home.root().to_str().unwrap());
    assert_eq!(fixture.ask("add ~code")["error"], "PROJECT_PATH_INVALID");
}

#[tokio::test]
async fn the_same_directory_has_the_same_id_in_every_home() {
    let (one, other) = (Home::new(), Home::new());
    let path = one.directory("code");
    let first = one.open().add_project(&path).await.unwrap();
    let second = other.open().add_project(&path).await.unwrap();
    assert_eq!(first.id, second.id);
}

#[tokio::test]
async fn the_root_of_the_disk_is_called_by_its_path() {
    let project = Home::new().open().add_project("/").await.unwrap();
    assert_eq!(project.name, "/");
}

#[tokio::test]
async fn twenty_projects_added_at_once_are_twenty_projects_on_the_disk() {
    let home = Home::new();
    let catalog = home.open();
    let mut adding = JoinSet::new();
    for number in 0..20 {
        let (catalog, path) = (catalog.clone(), home.directory(&number.to_string()));
        adding.spawn(async move { catalog.add_project(&path).await.unwrap() });
    }
    adding.join_all().await;
    assert_eq!(home.json("projects.json")["projects"].as_array().unwrap().len(), 20);
    assert_eq!(catalog.projects().len(), 20);
}

#[tokio::test]
async fn one_directory_added_by_twenty_at_once_is_added_once() {
    let home = Home::new();
    let catalog = home.open();
    let path = home.directory("code");
    let mut adding = JoinSet::new();
    for _ in 0..20 {
        let (catalog, path) = (catalog.clone(), path.clone());
        adding.spawn(async move { catalog.add_project(&path).await.is_ok() });
    }
    let added = adding.join_all().await.into_iter().filter(|added| *added).count();
    assert_eq!((added, catalog.projects().len()), (1, 1));
}

#[tokio::test]
async fn a_project_nobody_knows_cannot_be_removed() {
    let catalog = Home::new().open();
    let error = catalog.remove_project(&project_id("nope")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProjectNotFound);
}

/// A home whose file holds three projects with a field of somebody else's, and what the file says of them.
fn home_of_three() -> (Home, serde_json::Value) {
    let home = Home::new();
    let projects: Vec<_> = ["zebra", "apple", "mango"]
        .into_iter()
        .enumerate()
        .map(|(number, name)| {
            json!({"id": name, "path": home.directory(name), "name": format!("My {name}"),
                "addedAt": format!("2026-02-0{}T10:00:00.000Z", number + 1), "colour": number})
        })
        .collect();
    let file = json!({"version": 1, "projects": projects});
    home.write("projects.json", &file.to_string());
    (home, file)
}

#[tokio::test]
async fn a_removal_is_taken_back_to_exactly_what_was_there_in_any_order() {
    let (home, before) = home_of_three();
    let catalog = home.open();
    let [zebra, apple, mango] = ["zebra", "apple", "mango"].map(project_id);
    for order in [[&zebra, &apple, &mango], [&mango, &zebra, &apple], [&apple, &mango, &zebra]] {
        for id in [&apple, &zebra, &mango] {
            catalog.remove_project(id).await.unwrap();
            assert!(catalog.project(id).is_none());
        }
        assert_eq!(home.json("projects.json")["projects"], json!([]), "removed is removed, also on the disk");
        for id in order {
            let back = catalog.restore_project(id).await.unwrap();
            assert_eq!(Some(back), catalog.project(id));
        }
        assert_eq!(home.json("projects.json"), before);
    }
    assert_eq!(catalog.restore_project(&zebra).await.unwrap().id, zebra, "twice is no error");
    assert_eq!(home.json("projects.json"), before);
    let unknown = catalog.restore_project(&project_id("nobody")).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::ProjectNotFound);
}

#[tokio::test]
async fn a_removed_directory_that_is_added_again_is_what_it_was() {
    let (home, before) = home_of_three();
    let catalog = home.open();
    catalog.remove_project(&project_id("apple")).await.unwrap();
    let again = catalog.add_project(&home.directory("apple")).await.unwrap();
    assert_eq!((again.id, again.name.as_str()), (project_id("apple"), "My apple"));
    assert_eq!(home.json("projects.json"), before);
    assert_eq!(catalog.add_project(&home.directory("apple")).await.unwrap_err().code(), ErrorCode::ProjectDuplicate);
}

#[tokio::test]
async fn a_removal_can_be_taken_back_while_the_directory_is_gone_but_a_missing_one_cannot_be_added() {
    let (home, before) = home_of_three();
    let catalog = home.open();
    catalog.remove_project(&project_id("zebra")).await.unwrap();
    let path = home.directory("zebra");
    std::fs::remove_dir(&path).unwrap();
    assert_eq!(catalog.add_project(&path).await.unwrap_err().code(), ErrorCode::ProjectPathInvalid);
    assert_eq!(catalog.restore_project(&project_id("zebra")).await.unwrap().path, path);
    assert_eq!(home.json("projects.json"), before);
}

#[tokio::test]
async fn what_was_removed_does_not_come_back_by_itself() {
    let (home, _) = home_of_three();
    let catalog = home.open();
    catalog.remove_project(&project_id("apple")).await.unwrap();
    catalog.add_project(&home.directory("kiwi")).await.unwrap();
    drop(catalog);
    let names: Vec<_> = home.open().projects().into_iter().map(|project| project.name).collect();
    assert_eq!(names, ["My zebra", "My mango", "kiwi"]);
}

#[test]
fn a_removal_that_could_not_be_taken_back_on_the_disk_is_not_shown_as_taken_back() {
    let (home, before) = home_of_three();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(crate::support::fixture_program());
    command.arg(home.data()).arg("serve");
    let mut fixture = Fixture::start(command);
    fixture.ask("remove apple");
    fixture.ask("disk-full 20");
    assert_eq!(fixture.ask("restore apple")["error"], "STORAGE_FAILED");
    assert_eq!(fixture.ask("projects").as_array().unwrap().len(), 2);
    fixture.ask("disk-free");
    assert_eq!(fixture.ask("restore apple")["ok"]["name"], "My apple");
    assert_eq!(home.json("projects.json"), before);
}
