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

/// The secret, and sentences for the user about anything that was not as it should be.
pub(crate) fn token(directory: &DataDirectory) -> Result<(String, Vec<String>), CatalogError> {
    let path = directory.file(TOKEN_FILE);
    let storage = |error| CatalogError::storage(&path, error);
    let mut notices = Vec::new();
    if let Some(found) = read(directory)? {
        if is_token(&found) {
            if keep_private(directory).map_err(storage)? {
                notices.push(format!(
                    "The secret in {} could be read by other users of this machine; now it is private again. If \
                     somebody may have read it, delete the file and restart.",
                    path.display()
                ));
            }
            return Ok((found, logged(notices)));
        }
        // An empty or shortened secret must never open the door.
        let aside = directory.set_aside(TOKEN_FILE, "damaged")?;
        notices.push(format!(
            "The file {TOKEN_FILE} was damaged: it held no secret. It was set aside as {aside} in {} and a new secret was \
             made, so every browser needs to be let in again: run `liminal-builder open`.",
            directory.path().display()
        ));
    }
    let token = random_secret().map_err(storage)?;
    directory.replace(TOKEN_FILE, format!("{token}\n").as_bytes())?;
    Ok((token, logged(notices)))
}

fn logged(notices: Vec<String>) -> Vec<String> {
    notices.iter().for_each(|notice| tracing::warn!("{notice}"));
    notices
}

/// What the file holds, without the newline at its end. A file that is too long holds no secret.
fn read(directory: &DataDirectory) -> Result<Option<String>, CatalogError> {
    match directory.read(TOKEN_FILE, TOKEN_FILE_BYTES_MAX) {
        Ok(bytes) => Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())),
        Err(CatalogError::Storage { source, .. }) if source.kind() == io::ErrorKind::FileTooLarge => {
            Ok(Some(String::new()))
        }
        Err(error) => Err(error),
    }
}

/// The secret as it lies there; none is made, and nothing is repaired.
pub(crate) fn known(directory: &DataDirectory) -> Result<Option<String>, CatalogError> {
    let Some(bytes) = directory.read(TOKEN_FILE, TOKEN_FILE_BYTES_MAX)? else { return Ok(None) };
    Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|text| is_token(text)))
}

fn is_token(text: &str) -> bool {
    text.len() == 2 * TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// 256 random bits in hexadecimal.
pub fn random_secret() -> io::Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(2 * TOKEN_BYTES), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A backup or a careless copy may have opened it to others. Returns whether it was so.
fn keep_private(directory: &DataDirectory) -> io::Result<bool> {
    let path = directory.file(TOKEN_FILE);
    let mode = fs::metadata(&path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(false);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(true)
}
