//! One session and the page that watches it: sends, notes what comes, and compares it with what the journal has.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use protocol::{ClientMessage, ItemId, ServerFrame, ServerMessage, SessionId, TurnId};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Report;
use super::stored::{StoredSession, text, user_text};
use crate::{Screen, TestSetup, Window};

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendBy {
    Window,
    Http,
}

/// What a page that was away names.
#[derive(Clone, Debug)]
struct PageCursor {
    journal_id: String,
    epoch: u64,
}

#[derive(Debug)]
pub(super) struct Conversation {
    by: SendBy,
    random: fastrand::Rng,
    window: Window,
    address: SocketAddr,
    token: String,
    screen: Screen,
    cursor: PageCursor,
    sent: Vec<SentMessage>,
    ended: HashSet<TurnId>,
    /// When a text became so long on the page, in this round.
    arrivals: Vec<Arrival>,
    /// The settled items of the rounds before, in order.
    known: Vec<(ItemId, String)>,
}

#[derive(Debug)]
struct SentMessage {
    content: String,
    is_confirmed: bool,
}

#[derive(Debug)]
struct Arrival {
    item: ItemId,
    text_bytes: usize,
    at: Instant,
}

impl Conversation {
    pub(super) async fn begin(setup: &TestSetup, by: SendBy, seed: u64) -> Self {
        let (mut window, session, mut screen) = setup.begin("codex").await;
        let answer = open(&mut window, &session, None).await;
        let cursor = cursor(&answer);
        screen.take(&ServerFrame { message: answer, request_id: None });
        Self {
            by,
            random: fastrand::Rng::with_seed(seed),
            window,
            address: setup.app.address(),
            token: setup.app.token().to_owned(),
            screen,
            cursor,
            sent: Vec::new(),
            ended: HashSet::new(),
            arrivals: Vec::new(),
            known: Vec::new(),
        }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.screen.session
    }

    /// The page names what it has. It gets exactly what it missed, or everything if it has what was not recorded.
    pub(super) async fn join_again(&mut self, setup: &TestSetup, found: Option<&StoredSession>, report: &mut Report) {
        self.window = setup.app.window().await;
        (self.address, self.token) = (setup.app.address(), setup.app.token().to_owned());
        let (session, seen) = (self.session().clone(), self.screen.seq);
        let named = Some((seen, self.cursor.clone()));
        let answer = open(&mut self.window, &session, named).await;
        let ServerMessage::SessionHistory { since, entries, epoch, seq, journal_id, .. } = &answer else {
            panic!("{answer:?}")
        };
        let recorded = found.map_or(0, |found| found.head.seq);
        assert_eq!(*journal_id, self.cursor.journal_id);
        assert!(*epoch > self.cursor.epoch, "{session}: epoch {epoch} after {}", self.cursor.epoch);
        assert!(*seq >= recorded, "{session}: number {seq} after {recorded}");
        // Turns that were put between what the page has come with everything.
        let is_inserted = found.is_some_and(|found| found.has_inserted_after(seen));
        // The killed server may have begun an epoch to insert turns after the page joined. Then the page goes on only from
        // what it saw before that.
        let is_earlier = found.is_some_and(|found| found.head.epoch > self.cursor.epoch);
        let is_continued = seen <= recorded && !is_inserted && (since.is_some() || !is_earlier);
        if is_continued {
            assert_eq!(*since, Some(seen), "{session}: recorded up to {recorded}");
            // What was open is settled by the next server, and so changed.
            let changed = found.into_iter().flat_map(|found| &found.items);
            let changed = changed.filter(|item| item.last > seen || !item.upsert.status.is_final());
            let changed: Vec<&ItemId> = changed.map(|item| &item.upsert.item_id).collect();
            let got: Vec<&ItemId> = entries.iter().map(|entry| &entry.item_id).collect();
            assert_eq!(got, changed, "{session}: what was missed after {seen}");
            report.joined_since += 1;
        } else {
            assert_eq!(*since, None, "{session}: {seen} is past {recorded}");
            report.joined_by_snapshot += 1;
        }
        self.cursor = cursor(&answer);
        self.screen.take(&ServerFrame { message: answer, request_id: None });
        let mut other = setup.app.window().await;
        let fresh = Screen::open(&mut other, &session).await;
        let ids = |screen: &Screen| screen.items.iter().map(|item| item.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&self.screen), ids(&fresh), "{session}: the page that was open and a new one");
        assert_eq!(self.screen.texts(), fresh.texts(), "{session}: the page that was open and a new one");
    }

    /// Sends message after message until the server is gone.
    pub(super) async fn run(mut self, round: usize) -> Self {
        self.arrivals.clear();
        for number in 0.. {
            let content = self.prompt(round, number);
            let ends = self.ended.len();
            self.sent.push(SentMessage { content: content.clone(), is_confirmed: false });
            let is_there = match self.by {
                SendBy::Window => self.send(content).await,
                SendBy::Http => self.post(content).await,
            };
            if is_there.is_none() || self.read_until(|this| this.ended.len() > ends).await.is_none() {
                break;
            }
        }
        // What it sent before it died.
        while self.next().await.is_some() {}
        self
    }

    /// Each is unlike all others, so that it can be found.
    fn prompt(&mut self, round: usize, number: usize) -> String {
        let name = format!("{round}.{number}");
        match self.random.u8(0..6) {
            0 => format!("say:{name} short"),
            1 => format!(
                "think:{name} thought\nsay:{name} and\ncall:c{name} make\noutput:c{name} ok {name}\ndone:c{name} 0"
            ),
            2 => format!("say:{name} \nflood:{}", self.random.u32(200..4000)),
            3 => format!("say:{name} one\nagain:{name} two\nagain:{name} three"),
            _ => format!("say:{name} \npaced:{} mixed", self.random.u32(20..300)),
        }
    }

    async fn send(&mut self, content: String) -> Option<()> {
        let message = ClientMessage::SessionSend { session_id: self.session().clone(), content };
        let id = self.window.try_ask(&message).await?;
        loop {
            let frame = self.next().await?;
            if frame.request_id.as_deref() == Some(&id) {
                let ServerMessage::SessionTurn { recorded: true, .. } = frame.message else { panic!("{frame:?}") };
                self.sent.last_mut()?.is_confirmed = true;
                return Some(());
            }
        }
    }

    async fn post(&mut self, content: String) -> Option<()> {
        let path = format!("/api/session/{}/send", self.session());
        let request = post(self.address, self.token.clone(), path, json!({"content": content}));
        tokio::pin!(request);
        loop {
            tokio::select! {
                answer = &mut request => {
                    let answer = answer?;
                    assert_eq!(answer["recorded"], true, "{answer}");
                    self.sent.last_mut()?.is_confirmed = true;
                    return Some(());
                }
                frame = self.window.next_or_close() => self.take(&frame.ok()?),
            }
        }
    }

    async fn read_until(&mut self, is_it: impl Fn(&Self) -> bool) -> Option<()> {
        while !is_it(self) {
            self.next().await?;
        }
        Some(())
    }

    async fn next(&mut self) -> Option<ServerFrame> {
        let frame = self.window.next_or_close().await.ok()?;
        self.take(&frame);
        Some(frame)
    }

    fn take(&mut self, frame: &ServerFrame) {
        self.screen.take(frame);
        match &frame.message {
            ServerMessage::SessionUpsert { payload, .. } => {
                let shown = self.screen.items.iter().rfind(|item| item.id == payload.item_id);
                let text_bytes = shown.map_or(0, |item| item.text.len());
                self.arrivals.push(Arrival { item: payload.item_id.clone(), text_bytes, at: Instant::now() });
            }
            ServerMessage::SessionTurn { payload, recorded, .. } => {
                assert!(recorded, "the disk works: {payload:?}");
                if payload.is_end() {
                    self.ended.insert(payload.turn_id().clone());
                }
            }
            ServerMessage::Error(error) => panic!("{}: {error:?}", self.session()),
            _ => {}
        }
    }

    /// Everything that was confirmed is there, once, in its place; of what was not, little is missing.
    pub(super) fn compare(
        &mut self,
        found: Option<&StoredSession>,
        killed_at: Instant,
        missing_max: Duration,
        report: &mut Report,
    ) {
        let session = self.session().clone();
        let Some(found) = found else {
            assert!(self.sent.iter().all(|sent| !sent.is_confirmed), "{session} is not there");
            return;
        };
        let ids: Vec<&ItemId> = found.items.iter().map(|item| &item.upsert.item_id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{session}: an item is there twice");
        self.compare_messages(found, report);
        for turn in &self.ended {
            let record = found.turns.iter().find(|stored| stored.record.turn_id == *turn);
            let record = record.unwrap_or_else(|| panic!("{session}: turn {turn} ended and is not there"));
            assert!(record.record.ended_at.is_some(), "{session}: the end of {turn} is not there");
        }
        report.turn_ends_received += self.ended.len();
        self.compare_items(found, killed_at, missing_max, report);
        self.compare_known(found);
        self.known = found.items.iter().map(|item| (item.upsert.item_id.clone(), text(item).to_owned())).collect();
        self.ended.clear();
        self.sent.clear();
    }

    /// What was there before is there now, in the same order. A turn of the agent's history that the journal did not have
    /// may stand between.
    fn compare_known(&self, found: &StoredSession) {
        let known: HashSet<&ItemId> = self.known.iter().map(|(id, _)| id).collect();
        let now = found.items.iter().filter(|item| known.contains(&item.upsert.item_id) || !found.is_inserted(item));
        let now: Vec<(&ItemId, &str)> = now.map(|item| (&item.upsert.item_id, text(item))).collect();
        for (number, (id, text)) in self.known.iter().enumerate() {
            let there = now.get(number);
            assert!(there == Some(&(id, text.as_str())), "{}: {id} was item {number}, now {there:?}", self.session());
        }
    }

    fn compare_messages(&self, found: &StoredSession, report: &mut Report) {
        let session = self.session();
        let messages: Vec<&str> = found.items.iter().filter_map(user_text).collect();
        let mut seen = HashSet::new();
        if let Some(twice) = messages.iter().find(|message| !seen.insert(**message)) {
            panic!("{session}: {twice:?} is there twice");
        }
        let mut place = 0;
        for sent in &self.sent {
            match messages.iter().position(|message| *message == sent.content) {
                Some(at) => {
                    assert!(at >= place, "{session}: {:?} is in the wrong place", sent.content);
                    place = at;
                }
                None => assert!(!sent.is_confirmed, "{session}: {:?} was confirmed and is not there", sent.content),
            }
        }
        report.messages_sent += self.sent.len();
        report.messages_confirmed += self.sent.iter().filter(|sent| sent.is_confirmed).count();
    }

    fn compare_items(&self, found: &StoredSession, killed_at: Instant, missing_max: Duration, report: &mut Report) {
        let session = self.session();
        let by_id: HashMap<&ItemId, _> = found.items.iter().map(|item| (&item.upsert.item_id, item)).collect();
        let mut cut: HashMap<&ItemId, usize> = HashMap::new();
        for shown in &self.screen.items {
            let stored = by_id.get(&shown.id).map_or("", |item| text(item));
            let is_ended = self.ended.contains(&shown.last.turn_id);
            assert!(!is_ended || by_id.contains_key(&shown.id), "{session}: {} of an ended turn is missing", shown.id);
            if is_ended {
                assert_eq!(stored, shown.text, "{session}: {} of an ended turn", shown.id);
            }
            assert!(
                stored.starts_with(&shown.text) || shown.text.starts_with(stored),
                "{session}: {} is {stored:?} and was {:?}",
                shown.id,
                shown.text
            );
            if stored.len() < shown.text.len() || !by_id.contains_key(&shown.id) {
                cut.insert(&shown.id, stored.len());
            }
        }
        let shown: Vec<&ItemId> =
            self.screen.items.iter().map(|item| &item.id).filter(|id| by_id.contains_key(id)).collect();
        let on_page: HashSet<&ItemId> = shown.iter().copied().collect();
        let stored = found.items.iter().map(|item| &item.upsert.item_id).filter(|id| on_page.contains(id));
        assert_eq!(stored.collect::<Vec<_>>(), shown, "{session}: the order");
        report.cut_texts += usize::from(!cut.is_empty());
        for arrival in &self.arrivals {
            let Some(stored_bytes) = cut.get(&arrival.item) else { continue };
            if arrival.text_bytes <= *stored_bytes {
                continue;
            }
            let missing_for = killed_at.saturating_duration_since(arrival.at);
            report.missing_ms_max = report.missing_ms_max.max(missing_for.as_millis());
            assert!(missing_for <= missing_max, "{session}: text of {} was there for {missing_for:?}", arrival.item);
        }
    }
}

async fn open(window: &mut Window, session: &SessionId, named: Option<(u64, PageCursor)>) -> ServerMessage {
    let (since, named) = named.map_or((None, None), |(since, named)| (Some(since), Some(named)));
    let epoch = named.as_ref().map(|named| named.epoch);
    let journal_id = named.map(|named| named.journal_id);
    window.call(&ClientMessage::SessionOpen { session_id: session.clone(), since, epoch, journal_id }).await
}

fn cursor(answer: &ServerMessage) -> PageCursor {
    let ServerMessage::SessionHistory { journal_id, epoch, .. } = answer else { panic!("{answer:?}") };
    PageCursor { journal_id: journal_id.clone(), epoch: *epoch }
}

/// The answer's body. None if the server is gone before all of it came.
async fn post(address: SocketAddr, token: String, path: String, body: Value) -> Option<Value> {
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let body: Value = serde_json::from_str(body).ok()?;
    assert!(head.starts_with("HTTP/1.1 202"), "{answer}");
    Some(body)
}
