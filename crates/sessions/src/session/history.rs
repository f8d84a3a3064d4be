//! A session's history. The journal has it; the agent's own history fills in what the journal does not have.
//!
//! Opening a session reads the newest page of the journal and starts no agent. Where the agent keeps its history in files,
//! that is compared beside it; with other agents when a message needs them. Turns that only the agent has are added.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use journal::{Journal, JournalError, Page, Read, SessionHead, SessionKey, TurnMark, TurnOrigin, TurnOutline};
use protocol::{Continuity, ErrorCode, ErrorDetail, ItemId, SessionFacts, SessionId, TurnId, TurnRecord};
use providers::{
    AgentSession, History, HistoryCursor, HistoryWanted, LoadedSession, OpenedSession, Provider, ProviderError,
    StoredSession,
};
use upserts::ItemUpdate;

use super::last_turn::complete_last_turn;
use super::phases::{Lifetime, Link};
use super::reads::Import;
use super::recorder::Confirm;
use super::recording::Delivery;
use super::{CallResult, SessionActor, SessionCommand, now};
use crate::align::{self, Alignment, KnownIds};
use crate::error::ServiceError;
use crate::hub::HubCore;
use crate::transcript::{ForeignTurn, Transcript};

/// Newest items that are read of the journal when a session is opened.
const ITEMS_READ: usize = 200;
/// Items of an agent's history that are read at once.
const ITEMS_IMPORTED: usize = 2_000;
/// An agent's history is read back so far to find where it meets ours.
const ITEMS_COMPARED_MAX: usize = 50_000;
const CUT_SHORT: &str = "Liminal Builder stopped in the middle of this turn";

/// A page of history with its items in their final state.
#[derive(Debug, Default)]
pub(crate) struct HistoryPage {
    pub(crate) items: Vec<ItemUpdate>,
    pub(crate) turns: Vec<TurnRecord>,
    pub(crate) facts: SessionFacts,
    pub(crate) older: Option<HistoryCursor>,
    pub(crate) continuity: Continuity,
}

impl From<History> for HistoryPage {
    /// Takes as long as the page is long: call it beside the session's loop.
    fn from(History { events, turns, facts, older, continuity }: History) -> Self {
        Self { items: upserts::fold(events, now()), turns, facts, older, continuity }
    }
}

/// What the journal has of a session.
#[derive(Debug)]
pub(super) struct RecordedHistory {
    head: SessionHead,
    is_taken: bool,
    newest: Page,
    /// What was never settled, because the server ended first.
    open: Page,
}

/// A session that was opened at its agent.
#[derive(Debug)]
pub(super) struct LoadedHistory {
    opened: OpenedSession,
    page: HistoryPage,
    comparison: Comparison,
    /// Where the session continues, if turns are to be put between ours.
    head: Option<SessionHead>,
}

/// How the agent's history relates to ours.
#[derive(Debug)]
enum Comparison {
    /// It could not be compared now.
    Skipped,
    /// The agent gave none.
    NotGiven,
    /// We have nothing: the page is the newest part of it.
    New,
    /// `is_whole`: the page begins where the agent's history does.
    Aligned { ours: Vec<TurnOutline>, alignment: Alignment, is_whole: bool },
}

impl RecordedHistory {
    async fn read(hub: &HubCore, id: &SessionId) -> Result<Self, JournalError> {
        // Taking it over waits for the disk, and changes nothing of what is read.
        let (head, pages) = tokio::join!(hub.head(id), Self::read_pages(hub.journal().as_ref(), id));
        let ((head, is_taken), (newest, open)) = (head?, pages?);
        Ok(Self { head, is_taken, newest, open })
    }

    async fn read_pages(journal: &dyn Journal, id: &SessionId) -> Result<(Page, Page), JournalError> {
        let Some(SessionHead { key, .. }) = journal.find(id).await? else { return Ok(Default::default()) };
        let newest = journal.read(key, Read::Newest { limit: ITEMS_READ }).await?;
        Ok((newest, journal.read(key, Read::Open).await?))
    }
}

impl SessionActor {
    /// Reads what the journal has of the session.
    pub(super) fn read_history(&mut self) {
        self.link = Link::Reading;
        let (hub, id) = (Arc::clone(&self.hub), self.id.clone());
        self.calls.spawn(async move { CallResult::HistoryRead(RecordedHistory::read(&hub, &id).await) });
    }

    pub(super) fn history_read(&mut self, read: Result<RecordedHistory, JournalError>) {
        if !matches!(self.link, Link::Reading) {
            return;
        }
        self.link = Link::Unloaded;
        if !matches!(self.lifetime, Lifetime::Open) {
            return self.resume_waiting();
        }
        match read {
            Ok(recorded) => self.fill(recorded),
            Err(error) => return self.read_failed(&error),
        }
        let Ok(stored) = self.hub.stored_session(&self.id) else {
            return self.load_failed(ProviderError::LoadFailed { detail: "the session is not known".into() });
        };
        let is_complete = self.recorder.head().is_complete;
        if !self.transcript.is_ready() {
            self.load(stored);
        } else {
            self.link = Link::Detached;
            self.reads.compares_later = !is_complete || self.provider.keeps_history() && stored.prompted;
            self.compare_if_recorded();
        }
        self.publish_state();
        self.resume_waiting();
    }

    /// The journal may have the session: nothing is recorded over what cannot be read.
    fn read_failed(&mut self, error: &JournalError) {
        tracing::error!(session = %self.id, %error, "the history could not be read");
        let failure = ServiceError::Journal(error.to_string());
        for command in std::mem::take(&mut self.inbox.waiting) {
            command.refuse(&failure, Some(&self.id));
        }
        self.publish_state();
        self.end_if_useless();
    }

    /// Compares the agent's files with ours, once all of ours is recorded: a turn that is not would seem to be missing.
    pub(super) fn compare_if_recorded(&mut self) {
        let is_idle = matches!((&self.link, &self.lifetime), (Link::Detached, Lifetime::Open));
        if self.reads.compares_later && is_idle && self.recorder.is_clean() && !self.hub.is_stopping() {
            self.reads.compares_later = false;
            if let Ok(stored) = self.hub.stored_session(&self.id) {
                self.load(stored);
            }
        }
    }

    fn fill(&mut self, recorded: RecordedHistory) {
        let RecordedHistory { head, is_taken, newest, open } = recorded;
        self.facts.merge(head.facts.clone());
        self.transcript = Transcript::after(&head);
        let is_known = head.items > 0 || head.is_complete;
        self.recorder.set_head(head, is_taken);
        if !is_known {
            return;
        }
        self.transcript.fill(&self.id, newest);
        self.transcript.adopt(&self.id, open);
        // What still runs according to the journal ended with the server that wrote it.
        let last = self.hub.catalog().session(&self.id).and_then(|record| record.last_turn);
        let message = match last.map(|last| last.end) {
            Some(catalog::TurnEnd::Error { error_message, .. }) => error_message,
            _ => CUT_SHORT.to_owned(),
        };
        self.cut_recorded_turns(&ErrorDetail::new(ErrorCode::ProcessCrash, message));
    }

    /// Opens the session at its agent.
    pub(super) fn load(&mut self, mut stored: StoredSession) {
        let (is_ready, is_complete) = (self.transcript.is_ready(), self.recorder.head().is_complete);
        self.link = Link::Loading;
        // Beside a transcript that can be read nobody waits for it.
        self.shown.watch.loading(!is_ready);
        self.persist.complete(&mut stored);
        stored.history = if is_ready && is_complete { HistoryWanted::Compare } else { HistoryWanted::Newest };
        // Otherwise a turn would be missing in the journal that is not recorded yet.
        let is_comparable = self.recorder.is_clean() && self.recorder.is_taken();
        let ours = is_ready.then(|| (Arc::clone(self.hub.journal()), self.recorder.head().key));
        let (provider, hub) = (Arc::clone(&self.provider), Arc::clone(&self.hub));
        self.calls.spawn(async move {
            let ours = ours.map(|(journal, key)| Ours { journal, key, is_complete, is_comparable });
            let loaded = load(provider.as_ref(), stored, ours, &hub).await;
            CallResult::Loaded(loaded.map(Box::new))
        });
    }

    pub(super) fn load_ended(&mut self, loaded: Result<Box<LoadedHistory>, ProviderError>) {
        let is_wanted = matches!((&self.link, &self.lifetime), (Link::Loading, Lifetime::Open));
        match loaded {
            Ok(loaded) if is_wanted => self.loaded(*loaded),
            Err(error) if is_wanted => self.load_failed(error),
            Ok(loaded) => self.discard(loaded.opened.session),
            Err(error) => {
                tracing::debug!(session = %self.id, %error, "a session that was ended could not be loaded");
                self.discarded();
            }
        }
    }

    fn loaded(&mut self, loaded: LoadedHistory) {
        let LoadedHistory { opened, mut page, comparison, head } = loaded;
        if let Some(head) = head {
            self.recorder.set_head(head, true);
        }
        self.shown.watch.loading(false);
        let is_copy = page.continuity == Continuity::Copy;
        self.shown.watch.continuity(page.continuity);
        let agent_id = opened.agent_id.clone();
        self.attach(opened);
        self.facts.merge(page.facts.clone());
        self.recorder.facts_changed(&page.facts);
        self.publish_facts(page.facts.clone());
        let was_ready = self.transcript.is_ready();
        self.reads.compares_later = false;
        let (is_whole, is_changed) = match comparison {
            Comparison::Skipped => (false, false),
            Comparison::NotGiven => (true, false),
            Comparison::New => {
                if let Some(last) = self.hub.catalog().session(&self.id).and_then(|record| record.last_turn) {
                    complete_last_turn(&mut page, &self.id, last);
                }
                let older = page.older.take();
                self.import(foreign_turns(page.items, page.turns), None, None);
                let is_whole = older.is_none();
                self.reads.import = older.map_or(Import::None, Import::Waiting);
                (is_whole, true)
            }
            Comparison::Aligned { ours, alignment, is_whole } => (is_whole, self.add_missing(page, &ours, alignment)),
        };
        self.transcript.set_ready();
        if is_whole {
            self.recorder.complete();
        }
        if is_copy && *self.persist.agent_id() != agent_id {
            self.forget_turns();
        }
        self.agent_id_changed(agent_id);
        if is_changed && was_ready || !self.members.is_empty() && !was_ready {
            let seq = self.transcript.seq();
            self.deliver(Delivery::Refresh, seq, Confirm::No);
        }
        self.continue_import();
        self.publish_state();
        self.resume_waiting();
    }

    /// Takes turns of the agent's history in.
    fn import(&mut self, turns: Vec<ForeignTurn>, after: Option<i64>, before: Option<i64>) {
        let (cells, records) = self.transcript.insert(turns, after, before);
        let is_here = cells.iter().all(|cell| self.transcript.get(cell.id()).is_some());
        for cell in cells {
            let seq = cell.seq();
            self.recorder.item_changed(&cell, seq);
        }
        for (turn, seq) in records {
            self.recorder.turn_changed(&turn, seq);
        }
        if !is_here {
            // The journal is asked for these: until it has them no page is read.
            let seq = self.transcript.seq();
            self.deliver(Delivery::Imported, seq, Confirm::Now);
        }
    }

    /// Adds the turns that we do not have, and marks those that the agent no longer has. Whether anything changed.
    fn add_missing(&mut self, page: HistoryPage, ours: &[TurnOutline], alignment: Alignment) -> bool {
        let Alignment { matched, missing, forgotten, remembered } = alignment;
        let marks = forgotten.iter().map(|index| (index, true)).chain(remembered.iter().map(|index| (index, false)));
        let mut is_changed = false;
        for (index, forgotten) in marks {
            let Some(turn) = ours.get(*index) else { continue };
            let seq = self.transcript.mark_forgotten(&turn.turn_id, forgotten);
            self.recorder.turn_marked(TurnMark { turn_id: turn.turn_id.clone(), forgotten, seq });
            is_changed = true;
        }
        // An import that was interrupted may have brought only the end of a turn.
        let is_complete = self.recorder.head().is_complete;
        let partial = matched.iter().filter(|(index, _)| !is_complete && ours[*index].origin == TurnOrigin::Agent);
        let partial: Vec<_> = partial.copied().collect();
        if missing.is_empty() && partial.is_empty() {
            return is_changed;
        }
        let HistoryPage { items, turns: records, .. } = page;
        let theirs = align::agent_turns(&items);
        let known: HashSet<&ItemId> = ours.iter().flat_map(|turn| &turn.items).collect();
        let mut ids = KnownIds::of(ours);
        let mut groups: BTreeMap<Option<usize>, Vec<ForeignTurn>> = BTreeMap::new();
        // Ours had the beginning: what is in front of it now was pruned, and is not wanted back.
        let is_pruned = |after: Option<usize>| is_complete && after.is_none() && !ours.is_empty();
        for turn in missing.into_iter().filter(|turn| !is_pruned(turn.after)) {
            let theirs = &theirs[turn.theirs];
            let record = records.iter().find(|record| record.turn_id == theirs.id).cloned();
            let (turn_id, items) = ids.take_in(theirs, &items);
            let record = record.map(|record| TurnRecord { turn_id, ..record });
            groups.entry(turn.after).or_default().push(ForeignTurn { record, items });
        }
        for (index, place) in partial {
            let lacking = theirs[place].places.iter().filter_map(|place| items.get(*place));
            let items: Vec<_> = lacking.filter(|item| !known.contains(&item.item_id)).cloned().collect();
            if !items.is_empty() {
                groups.entry(index.checked_sub(1)).or_default().push(ForeignTurn { record: None, items });
            }
        }
        tracing::info!(session = %self.id, turns = groups.values().map(Vec::len).sum::<usize>(), "turns added from the agent's history");
        for (after, turns) in groups {
            let next = after.map_or(0, |index| index + 1);
            let behind = after.and_then(|index| ours.get(index)).map(|turn| turn.last_position);
            let in_front = ours.get(next).map(|turn| turn.position);
            self.import(turns, behind, in_front);
        }
        true
    }

    /// The agent began a conversation of its own anew: it remembers nothing of the turns that have ended.
    pub(super) fn forget_turns(&mut self) {
        let (journal, key) = (Arc::clone(self.hub.journal()), self.recorder.head().key);
        let (here, last_position) = (self.transcript.ended_turns(), self.transcript.last_position());
        let running = self.transcript.unfinished().0;
        self.calls.spawn(async move {
            let is_over = |turn: &TurnOutline| {
                let is_earlier = turn.position <= last_position && Some(&turn.turn_id) != running.as_ref();
                is_earlier && turn.has_ended && !turn.is_forgotten && turn.prompt.is_some()
            };
            let recorded = journal.outline(key).await.unwrap_or_default().into_iter();
            CallResult::Forgotten(recorded.filter(is_over).map(|turn| turn.turn_id).chain(here).collect())
        });
    }

    pub(super) fn forgotten(&mut self, turns: BTreeSet<TurnId>) {
        let since = self.transcript.seq();
        for turn_id in turns {
            let seq = self.transcript.mark_forgotten(&turn_id, true);
            self.recorder.turn_marked(TurnMark { turn_id, forgotten: true, seq });
        }
        let seq = self.transcript.seq();
        self.deliver(Delivery::TurnsMarked { since, seq }, seq, Confirm::No);
    }

    pub(super) fn load_failed(&mut self, error: ProviderError) {
        tracing::warn!(session = %self.id, %error, "could not load");
        self.shown.watch.loading(false);
        if self.transcript.is_ready() {
            // What we have stays, marked as a copy.
            self.shown.watch.continuity(Continuity::Copy);
        }
        self.publish_state();
        let failure = match error {
            // These say more than "could not load": what to install, or how to log in.
            ProviderError::NotInstalled { .. }
            | ProviderError::Handshake { .. }
            | ProviderError::LoginRequired { .. } => error,
            other => ProviderError::LoadFailed { detail: other.to_string() },
        };
        let failure = failure.into();
        for command in std::mem::take(&mut self.inbox.waiting) {
            command.refuse(&failure, Some(&self.id));
        }
        self.link = self.without_agent();
        self.end_if_useless();
    }

    /// Reads on in the agent's history until the journal has all of it. Each page is recorded before the next is read.
    pub(super) fn continue_import(&mut self) {
        let Import::Waiting(cursor) = &self.reads.import else { return };
        if !self.recorder.is_settled() {
            return;
        }
        let (Some(agent), true) = (self.link.agent().cloned(), self.recorder.is_clean()) else {
            // The disk fails or the agent is gone; it is tried again when the session is opened the next time.
            self.reads.import = Import::None;
            return self.resume_waiting();
        };
        let cursor = cursor.clone();
        self.reads.import = Import::Reading;
        self.calls.spawn(async move {
            let older = agent.older_history(&cursor, ITEMS_IMPORTED).await;
            CallResult::Older(older.map(Into::into), cursor)
        });
    }

    pub(super) fn older_ended(&mut self, older: Result<HistoryPage, ProviderError>, asked: &HistoryCursor) {
        if !matches!(self.reads.import, Import::Reading) {
            return;
        }
        self.reads.import = Import::None;
        match older {
            Ok(page) => {
                let before = self.transcript.first_position();
                self.import(foreign_turns(page.items, page.turns), None, Some(before));
                // A cursor that leads nowhere would be followed for ever.
                match page.older.filter(|older| older != asked) {
                    Some(older) => self.reads.import = Import::Waiting(older),
                    None => self.recorder.complete(),
                }
                self.continue_import();
            }
            Err(error) => {
                // Who wanted it gets the error. The next time the session is opened it is tried again.
                tracing::warn!(session = %self.id, %error, "older history could not be read");
                let failure = ProviderError::LoadFailed { detail: error.to_string() }.into();
                let wants_it = |command: &mut SessionCommand| {
                    matches!(command, SessionCommand::Open { .. } | SessionCommand::Page { .. })
                };
                for command in self.inbox.waiting.extract_if(.., wants_it) {
                    command.refuse(&failure, Some(&self.id));
                }
            }
        }
        self.resume_waiting();
    }

    pub(super) fn resume_waiting(&mut self) {
        // One by one: if one of them panics, the others are still here to be refused.
        for _ in 0..self.inbox.waiting.len() {
            if self.inbox.waiting.is_empty() {
                return;
            }
            let command = self.inbox.waiting.remove(0);
            self.handle(command);
        }
    }
}

/// Where our own history of the session is.
struct Ours {
    journal: Arc<dyn Journal>,
    key: SessionKey,
    /// It begins where the agent's does.
    is_complete: bool,
    /// All of it is recorded.
    is_comparable: bool,
}

/// Opens the session at its agent and compares its history with ours. Takes as long as the history is long.
async fn load(
    provider: &dyn Provider,
    stored: StoredSession,
    ours: Option<Ours>,
    hub: &HubCore,
) -> Result<LoadedHistory, ProviderError> {
    let id = stored.id.clone();
    let LoadedSession { opened, history, has_history } = provider.load_session(stored).await?;
    let mut page = HistoryPage::from(history);
    let comparison = match ours {
        _ if !has_history => Comparison::NotGiven,
        None => Comparison::New,
        Some(Ours { is_comparable: false, .. }) => Comparison::Skipped,
        Some(Ours { journal, key, is_complete, .. }) => match journal.outline(key).await {
            Ok(ours) => {
                let (compared, comparison) = compare(opened.session.as_ref(), ours, is_complete, page).await;
                page = compared;
                comparison
            }
            Err(error) => {
                tracing::error!(%error, "the agent's history could not be compared");
                Comparison::Skipped
            }
        },
    };
    let inserts = matches!(&comparison, Comparison::Aligned { alignment, .. } if !alignment.missing.is_empty());
    // A new epoch: a window that has not been shown the turns between ours cannot go on from its cursor, whatever it has
    // seen of what follows.
    let (comparison, head) = match inserts {
        true => match hub.take_over(&id).await {
            Ok(head) => (comparison, Some(head)),
            Err(error) => {
                tracing::error!(session = %id, %error, "the agent's turns are not added now");
                (Comparison::Skipped, None)
            }
        },
        false => (comparison, None),
    };
    Ok(LoadedHistory { opened, page, comparison, head })
}

/// Reads back in the agent's history until it meets ours or, if ours lacks the beginning, to its own beginning.
async fn compare(
    agent: &dyn AgentSession,
    mut ours: Vec<TurnOutline>,
    is_complete: bool,
    mut page: HistoryPage,
) -> (HistoryPage, Comparison) {
    loop {
        // Long histories take long: not where other sessions wait for the thread.
        let aligned = tokio::task::spawn_blocking(move || {
            let alignment = align::align(&ours, &align::agent_turns(&page.items), page.older.is_none());
            (ours, page, alignment)
        });
        let Ok((compared, read, alignment)) = aligned.await else {
            return (HistoryPage::default(), Comparison::Skipped);
        };
        (ours, page) = (compared, read);
        let meets = is_complete && alignment.matched.iter().any(|(ours, theirs)| *ours == 0 || *theirs == 0);
        let Some(cursor) = page.older.clone().filter(|_| !meets && page.items.len() < ITEMS_COMPARED_MAX) else {
            let is_whole = page.older.is_none();
            return (page, Comparison::Aligned { ours, alignment, is_whole });
        };
        let Ok(older) = agent.older_history(&cursor, ITEMS_IMPORTED).await else {
            return (page, Comparison::Skipped);
        };
        let mut older = HistoryPage::from(older);
        page.older = older.older.filter(|next| *next != cursor);
        older.items.append(&mut page.items);
        older.turns.retain(|turn| page.turns.iter().all(|known| known.turn_id != turn.turn_id));
        older.turns.append(&mut page.turns);
        (page.items, page.turns) = (older.items, older.turns);
    }
}

/// The items of each turn, in the order in which the turns first appear.
fn foreign_turns(items: Vec<ItemUpdate>, records: Vec<TurnRecord>) -> Vec<ForeignTurn> {
    let mut records: HashMap<TurnId, TurnRecord> =
        records.into_iter().map(|record| (record.turn_id.clone(), record)).collect();
    let mut turns: Vec<(TurnId, ForeignTurn)> = Vec::new();
    let mut places: HashMap<TurnId, usize> = HashMap::new();
    for item in items {
        let place = *places.entry(item.turn_id.clone()).or_insert_with(|| {
            let record = records.remove(&item.turn_id);
            turns.push((item.turn_id.clone(), ForeignTurn { record, items: Vec::new() }));
            turns.len() - 1
        });
        turns[place].1.items.push(item);
    }
    turns.into_iter().map(|(_, turn)| turn).collect()
}
