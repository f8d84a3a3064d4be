//! The authorized browsers. Each holds its own credential in a cookie; we store the hash.
//!
//! Comes in: a credential from a request, a browser to authorize or to revoke. Goes out: the browser it belongs to, and
//! the list. The secret is part of every hash, so a new secret invalidates every credential. Kept out: cookies and
//! headers.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use catalog::{BrowserList, BrowserRecord, Catalog, CatalogError, random_secret};
use protocol::Timestamp;
use protocol::http::BrowserInfo;
use serde_json::Map;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::secret::Secret;

/// More than anybody has. The browser unused for longest is removed, and needs a link to return.
pub(crate) const BROWSERS_MAX: usize = 100;
/// How late the time of last use may be saved.
const SAVE_AFTER: Duration = Duration::from_secs(60);
const PREFIX: &str = "browser-";
/// The length of a `random_secret`.
const RANDOM_LENGTH: usize = 64;
const ID_LENGTH: usize = 8;

/// A cheap handle.
#[derive(Clone, Debug)]
pub struct Browsers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    catalog: Catalog,
    secret: Secret,
    state: Mutex<State>,
    /// Held while the file is written, and locked before the state is read: a later write never contains an older list.
    writing: Mutex<()>,
    /// Wakes the task that saves changes.
    used: Notify,
}

#[derive(Debug)]
struct State {
    known: Vec<KnownBrowser>,
    extra: Map<String, serde_json::Value>,
    is_saved: bool,
}

#[derive(Debug)]
struct KnownBrowser {
    record: BrowserRecord,
    hash: [u8; 32],
    access: Arc<BrowserAccess>,
}

/// Held by the requests and windows of a browser. All of one browser share it.
#[derive(Debug)]
pub(crate) struct BrowserAccess {
    pub(crate) id: String,
    /// Cancelled when the browser is revoked.
    pub(crate) revoked: CancellationToken,
}

impl KnownBrowser {
    fn new(record: BrowserRecord, hash: [u8; 32]) -> Self {
        let access = BrowserAccess { id: record.id.clone(), revoked: CancellationToken::new() };
        Self { record, hash, access: Arc::new(access) }
    }

    /// Whether a request or a window of it holds its access now.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.access) > 1
    }
}

impl Browsers {
    /// Reads the list; problems with it are added to `notices`. Blocks on the disk.
    pub fn open(catalog: Catalog, secret: Secret, notices: &mut Vec<String>) -> Result<Self, CatalogError> {
        let list = catalog.browsers(notices)?;
        let is_ours = same(list.secret.as_bytes(), fingerprint(&secret).as_bytes());
        if !is_ours && !list.browsers.is_empty() {
            tracing::info!("the secret is new: previously authorized browsers need the link again");
        }
        let records = if is_ours { list.browsers } else { Vec::new() };
        let known = records.into_iter().filter_map(|record| {
            let hash = from_hex(&record.hash)?;
            Some(KnownBrowser::new(record, hash))
        });
        let mut state = State { known: known.collect(), extra: list.extra, is_saved: true };
        state.make_room(BROWSERS_MAX);
        let (state, writing, used) = (Mutex::new(state), Mutex::new(()), Notify::new());
        Ok(Self(Arc::new(Shared { catalog, secret, state, writing, used })))
    }

    /// The browser with this credential. All are compared, so that the time reveals nothing.
    pub(crate) fn admit(&self, offered: &str) -> Option<Arc<BrowserAccess>> {
        if offered.len() != PREFIX.len() + RANDOM_LENGTH || !offered.starts_with(PREFIX) {
            return None;
        }
        let hash = self.hash(offered);
        let mut state = self.state();
        let found = state.known.iter_mut().fold(None, |found, known| match same(&known.hash, &hash) {
            true => Some(known),
            false => found,
        })?;
        found.record.last_used_at = now().max(found.record.last_used_at);
        let access = Arc::clone(&found.access);
        if std::mem::take(&mut state.is_saved) {
            self.0.used.notify_one();
        }
        Some(access)
    }

    /// A new credential, for a browser that has presented the secret or a ticket. It works at once, and after a restart
    /// if it could be saved.
    pub(crate) async fn authorize(&self, label: String) -> io::Result<String> {
        let credential = format!("{PREFIX}{}", random_secret()?);
        let id: String = random_secret()?.chars().take(ID_LENGTH).collect();
        let hash = self.hash(&credential);
        let added_at = now();
        tracing::info!(id, label, "authorized a browser");
        let record =
            BrowserRecord { id, hash: to_hex(&hash), label, added_at, last_used_at: added_at, extra: Map::new() };
        {
            let mut state = self.state();
            state.make_room(BROWSERS_MAX - 1);
            state.known.push(KnownBrowser::new(record, hash));
            state.is_saved = false;
        }
        if let Err(error) = self.save().await {
            tracing::warn!("a browser is authorized for this run only: {error}");
        }
        Ok(credential)
    }

    /// In the order added. `current` is the id of the browser that made the request, if any.
    pub(crate) fn list(&self, current: Option<&str>) -> Vec<BrowserInfo> {
        let now = now();
        let state = self.state();
        let info = |known: &KnownBrowser| BrowserInfo {
            id: known.record.id.clone(),
            label: known.record.label.clone(),
            added_at: known.record.added_at,
            last_used_at: if known.is_in_use() { now } else { known.record.last_used_at },
            is_current: current == Some(known.record.id.as_str()),
        };
        state.known.iter().map(info).collect()
    }

    /// Revokes these browsers and closes their windows at once; returns their ids. An error means that the change could
    /// not be saved and lasts only until the server ends.
    pub(crate) async fn revoke(&self, which: impl Fn(&str) -> bool) -> Result<Vec<String>, CatalogError> {
        let revoked = {
            let mut state = self.state();
            let revoked = state.remove(|known| which(&known.record.id));
            state.is_saved &= revoked.is_empty();
            revoked
        };
        if !revoked.is_empty() {
            tracing::info!(?revoked, "revoked browsers");
            self.save().await?;
        }
        Ok(revoked)
    }

    /// Saves times of last use from time to time, and once more at the end.
    pub(crate) async fn keep_saved(&self, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.0.used.notified() => {
                    let _ = tokio::time::timeout(SAVE_AFTER, stop.cancelled()).await;
                }
            }
            let is_last = stop.is_cancelled();
            if let Err(error) = self.save().await {
                tracing::warn!("could not save when browsers were last used: {error}");
            }
            if is_last {
                return;
            }
        }
    }

    /// Nothing is written when nothing has changed.
    async fn save(&self) -> Result<(), CatalogError> {
        let own = self.clone();
        let saved = tokio::task::spawn_blocking(move || own.save_now()).await;
        saved.unwrap_or(Err(CatalogError::Stopped))
    }

    fn save_now(&self) -> Result<(), CatalogError> {
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let list = {
            let mut state = self.state();
            if std::mem::replace(&mut state.is_saved, true) {
                return Ok(());
            }
            let now = now();
            for known in state.known.iter_mut().filter(|known| known.is_in_use()) {
                known.record.last_used_at = now;
            }
            let browsers = state.known.iter().map(|known| known.record.clone()).collect();
            BrowserList { secret: fingerprint(&self.0.secret), browsers, extra: state.extra.clone() }
        };
        self.0.catalog.save_browsers(&list).inspect_err(|_| self.state().is_saved = false)
    }

    fn hash(&self, credential: &str) -> [u8; 32] {
        digest(&["liminal-builder browser", self.0.secret.reveal(), credential])
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps at most so many: browsers in use first, then those used most recently.
    fn make_room(&mut self, left_max: usize) {
        while self.known.len() > left_max {
            let oldest = self.known.iter().min_by_key(|known| (known.is_in_use(), known.record.last_used_at));
            let Some(id) = oldest.map(|known| known.record.id.clone()) else { return };
            tracing::info!(id, "more than {BROWSERS_MAX} browsers: revoked the one unused for longest");
            self.remove(|known| known.record.id == id);
        }
    }

    fn remove(&mut self, which: impl Fn(&KnownBrowser) -> bool) -> Vec<String> {
        let (gone, left) = std::mem::take(&mut self.known).into_iter().partition(which);
        self.known = left;
        let gone: Vec<KnownBrowser> = gone;
        gone.into_iter()
            .map(|known| {
                known.access.revoked.cancel();
                known.record.id
            })
            .collect()
    }
}

/// Identifies the secret a list belongs to, without revealing it: 256 random bits cannot be guessed from their hash.
fn fingerprint(secret: &Secret) -> String {
    to_hex(&digest(&["liminal-builder secret", secret.reveal()]))
}

/// No part holds the byte that separates them.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().into()
}

fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

#[cfg(test)]
#[path = "browsers_tests.rs"]
mod tests;
