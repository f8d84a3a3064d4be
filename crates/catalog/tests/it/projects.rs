//! Adding and removing directories.

use std::os::unix::fs::symlink;

use catalog::CatalogError;
use protocol::ErrorCode;
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
