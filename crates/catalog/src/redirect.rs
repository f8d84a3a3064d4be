//! A page in a private file, for a browser that is started where a command line is no place for a one-time link.

use std::fs;
use std::path::{Path, PathBuf};

use crate::directory::DataDirectory;
use crate::error::CatalogError;
use crate::token::random_secret;

const PREFIX: &str = ".open-";
/// Browsers take it for a page by its ending.
const SUFFIX: &str = ".html";

/// Is this a file that a crash left behind?
pub(crate) fn is_redirect_file(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// The file is removed when this is dropped.
#[derive(Debug)]
pub struct RedirectFile {
    path: PathBuf,
}

impl RedirectFile {
    pub(crate) fn write(directory: &DataDirectory, html: &str) -> Result<Self, CatalogError> {
        let storage = |error| CatalogError::storage(directory.path(), error);
        let name = format!("{PREFIX}{}{SUFFIX}", random_secret().map_err(storage)?);
        directory.replace(&name, html.as_bytes())?;
        Ok(Self { path: directory.file(&name) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RedirectFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "a redirect file was removed by somebody else");
        }
    }
}
