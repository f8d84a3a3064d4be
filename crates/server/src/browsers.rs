//! The browsers that were let in. Each holds a credential of its own, in a cookie; we keep its hash.
//!
//! Comes in: a credential that a request offers, a browser to let in or to revoke. Goes out: whose it is, and the list.
//! The secret is part of every hash, so that a new secret makes every credential worthless. Kept out: cookies and headers.

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

/// More than anybody has. The one that has not been used for longest gives way, and needs a link to come back.
pub(crate) const BROWSERS_MAX: usize = 100;
/// How long the time of last use may lag behind on the disk.
const SAVE_AFTER: Duration = Duration::from_secs(60);
const PREFIX: &str = "browser-";
/// As long as what `random_secret` gives.
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
    /// Held while the file is written, and taken before the state is read: a later write never holds an older list.
    writing: Mutex<()>,
    /// Something is to be saved when there is time.
    used: Notify,
}

#[derive(Debug)]
struct State {
    known: Vec<Known>,
    extra: Map<String, serde_json::Value>,
    is_saved: bool,
}

#[derive(Debug)]
struct Known {
    record: BrowserRecord,
    hash: [u8; 32],
    standing: Arc<Standing>,
}

/// What a request or a window of a browser holds. Several at once are one browser's.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) id: String,
    /// Cancelled when the browser is no longer let in.
    pub(crate) revoked: CancellationToken,
}

impl Known {
    fn new(record: BrowserRecord, hash: [u8; 32]) -> Self {
        let standing = Standing { id: record.id.clone(), revoked: CancellationToken::new() };
        Self { record, hash, standing: Arc::new(standing) }
    }

    /// Does a request or a window of it hold its standing now?
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.standing) > 1
    }
}

impl Browsers {
    /// Reads the list; sentences about what was wrong with it join `notices`. Waits for the disk.
    pub fn open(catalog: Catalog, secret: Secret, notices: &mut Vec<String>) -> Result<Self, CatalogError> {
        let list = catalog.browsers(notices)?;
        let is_ours = same(list.secret.as_bytes(), fingerprint(&secret).as_bytes());
        if !is_ours && !list.browsers.is_empty() {
            tracing::info!("the secret is new: the browsers that were let in before need the link again");
        }
        let records = if is_ours { list.browsers } else { Vec::new() };
        let known = records.into_iter().filter_map(|record| {
            let hash = from_hex(&record.hash)?;
            Some(Known::new(record, hash))
        });
        let mut state = State { known: known.collect(), extra: list.extra, is_saved: true };
        state.make_room(BROWSERS_MAX);
        let (state, writing, used) = (Mutex::new(state), Mutex::new(()), Notify::new());
        Ok(Self(Arc::new(Shared { catalog, secret, state, writing, used })))
    }

    /// Whose credential is this? Every one is compared, so that the time tells nothing.
    pub(crate) fn admit(&self, offered: &str) -> Option<Arc<Standing>> {
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
        let standing = Arc::clone(&found.standing);
        if std::mem::take(&mut state.is_saved) {
            self.0.used.notify_one();
        }
        Some(standing)
    }

    /// A new credential, for a browser that has shown the secret or a ticket. It works at once, and after a restart if it
    /// could be saved.
    pub(crate) async fn let_in(&self, label: String) -> io::Result<String> {
        let credential = format!("{PREFIX}{}", random_secret()?);
        let id: String = random_secret()?.chars().take(ID_LENGTH).collect();
        let hash = self.hash(&credential);
        let added_at = now();
        tracing::info!(id, label, "let a browser in");
        let record =
            BrowserRecord { id, hash: to_hex(&hash), label, added_at, last_used_at: added_at, extra: Map::new() };
        {
            let mut state = self.state();
            state.make_room(BROWSERS_MAX - 1);
            state.known.push(Known::new(record, hash));
            state.is_saved = false;
        }
        if let Err(error) = self.save().await {
            tracing::warn!("a browser was let in for this run only: {error}");
        }
        Ok(credential)
    }

    /// In the order added. `current` is the id of the one that asks, if one does.
    pub(crate) fn list(&self, current: Option<&str>) -> Vec<BrowserInfo> {
        let now = now();
        let state = self.state();
        let info = |known: &Known| BrowserInfo {
            id: known.record.id.clone(),
            label: known.record.label.clone(),
            added_at: known.record.added_at,
            last_used_at: if known.is_in_use() { now } else { known.record.last_used_at },
            is_current: current == Some(known.record.id.as_str()),
        };
        state.known.iter().map(info).collect()
    }

    /// Takes the credentials of these browsers away and closes their windows, at once; returns their ids. An error means
    /// that this could not be saved, and holds until the server ends.
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

    /// Writes times of last use now and then, and once more at the end.
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
    /// Leaves at most so many: those in use stay before the others, then those used last.
    fn make_room(&mut self, left_max: usize) {
        while self.known.len() > left_max {
            let oldest = self.known.iter().min_by_key(|known| (known.is_in_use(), known.record.last_used_at));
            let Some(id) = oldest.map(|known| known.record.id.clone()) else { return };
            tracing::info!(id, "more than {BROWSERS_MAX} browsers: the one not used for longest is no longer let in");
            self.remove(|known| known.record.id == id);
        }
    }

    fn remove(&mut self, which: impl Fn(&Known) -> bool) -> Vec<String> {
        let (gone, left) = std::mem::take(&mut self.known).into_iter().partition(which);
        self.known = left;
        let gone: Vec<Known> = gone;
        gone.into_iter()
            .map(|known| {
                known.standing.revoked.cancel();
                known.record.id
            })
            .collect()
    }
}

/// Says which secret a list belongs to, without telling it: 256 random bits are not guessed from their hash.
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
