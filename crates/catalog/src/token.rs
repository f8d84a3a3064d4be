//! The secret that lets a browser in: 256 bits in hexadecimal, for the user's eyes only, made on the first start.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;

use crate::directory::DataDirectory;
use crate::error::CatalogError;

pub(crate) const TOKEN_FILE: &str = "token";
const TOKEN_BYTES: usize = 32;
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

pub(crate) fn token(directory: &DataDirectory) -> Result<String, CatalogError> {
    let path = directory.file(TOKEN_FILE);
    let storage = |error| CatalogError::storage(&path, error);
    if let Some(bytes) = directory.read(TOKEN_FILE, TOKEN_FILE_BYTES_MAX)? {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if is_token(&text) {
            keep_private(directory).map_err(storage)?;
            return Ok(text);
        }
        // An empty or shortened secret must never open the door.
        let aside = directory.set_aside(TOKEN_FILE, "damaged")?;
        tracing::warn!(%aside, "the token file held no token; a new one is made and the old file set aside");
    }
    let token = random_token().map_err(storage)?;
    directory.replace(TOKEN_FILE, format!("{token}\n").as_bytes())?;
    Ok(token)
}

/// The secret as it lies there; none is made, and nothing is mended.
pub(crate) fn known(directory: &DataDirectory) -> Result<Option<String>, CatalogError> {
    let Some(bytes) = directory.read(TOKEN_FILE, TOKEN_FILE_BYTES_MAX)? else { return Ok(None) };
    Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|text| is_token(text)))
}

fn is_token(text: &str) -> bool {
    text.len() == 2 * TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(2 * TOKEN_BYTES), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A backup or a careless copy may have opened it to others.
fn keep_private(directory: &DataDirectory) -> io::Result<()> {
    let path = directory.file(TOKEN_FILE);
    let mode = fs::metadata(&path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    tracing::warn!(path = %path.display(), "the token file was open to other users; now it is private again");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
}
