//! One server per data directory.

use catalog::{Catalog, CatalogError};

use crate::support::{Fixture, Home};

#[test]
fn a_second_server_is_refused_with_the_address_of_the_first() {
    let home = Home::new();
    let mut first = Fixture::serve(&home.data());
    let before = Catalog::open(&home.data()).unwrap_err();
    assert!(matches!(&before, CatalogError::Locked { by, .. } if by.pid == Some(first.pid()) && by.address.is_none()));
    first.ask("announce http://127.0.0.1:3000");
    let error = Catalog::open(&home.data()).unwrap_err();
    let expected = format!(
        "the data directory {} is in use by another Liminal Builder at http://127.0.0.1:3000 (process {})",
        home.data().display(),
        first.pid()
    );
    assert_eq!(error.to_string(), expected);
    // A shorter address leaves nothing of the longer one.
    first.ask("announce http://[::1]:80");
    assert!(Catalog::open(&home.data()).unwrap_err().to_string().contains("http://[::1]:80 "));
}

#[test]
fn a_server_that_was_killed_leaves_the_directory_free() {
    let home = Home::new();
    Fixture::serve(&home.data()).kill();
    home.open();
}

#[test]
fn a_directory_is_free_again_when_the_last_handle_is_gone() {
    let home = Home::new();
    let first = home.open();
    let second = first.clone();
    drop(first);
    assert!(Catalog::open(&home.data()).is_err());
    drop(second);
    home.open();
}

#[test]
fn a_data_directory_that_cannot_be_made_is_an_error_that_names_it() {
    let home = Home::new();
    std::fs::write(home.root().join("file"), "").unwrap();
    let error = Catalog::open(&home.root().join("file/data")).unwrap_err();
    assert!(matches!(&error, CatalogError::Storage { path, .. } if path.ends_with("file/data")), "{error}");
}
