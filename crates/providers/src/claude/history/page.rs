//! Which entries of a session file make up a page of its conversation.
//!
//! Entries name the one before them. A file may hold branches: the conversation is the chain up from the last entry,
//! and beside it the parallel tools of the messages on the chain. The file is read from its end only as far as needed,
//! and a page begins where nothing is torn: at a message of the user, or at a message of the model.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Deserialize;

use super::backward::BackwardLines;
use crate::claude::texts;
use crate::json;

/// A chain that breaks more often than this in one page counts as ended.
const BREAKS_MAX: usize = 64;
/// Enough of a text to see what it is.
const START_CHARS: usize = 40;
/// The line at a cursor is read in steps of this.
const LINE_STEP_BYTES: usize = 64 * 1024;
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A page ends here though it has fewer items than asked for: entries may hold pictures and whole files.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What may stand beside the chain between one entry and the one before it: parallel tools. More is an abandoned
/// branch.
const BESIDE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// An entry further up the file than this is not looked for: the chain is broken.
const SEARCH_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// A page of a conversation, oldest first.
#[derive(Debug, Default)]
pub(super) struct EntryPage {
    pub(super) entries: Vec<Vec<u8>>,
    /// Where older entries end; none at the beginning.
    pub(super) older: Option<u64>,
    /// The turn that the page begins in the middle of.
    pub(super) within: Option<TurnOpening>,
    /// The page ends in the middle of a turn.
    pub(super) goes_on: bool,
}

/// How the turn began that a page cuts in two: by this entry of the user's, or this message of the model's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TurnOpening {
    pub(super) id: String,
    pub(super) timestamp: Option<String>,
}

/// What decides about an entry, without its contents.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryHead {
    r#type: String,
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    parent_uuid: Option<String>,
    /// Across a compaction.
    #[serde(default)]
    logical_parent_uuid: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    message: Option<MessageHead>,
}

#[derive(Debug, Deserialize)]
struct MessageHead {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    content: Content,
}

/// Only as much of a message's content as is needed here.
#[derive(Debug, Default)]
struct Content {
    /// How its first text begins.
    start: String,
    blocks: usize,
    calls: Vec<String>,
    results: Vec<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Content;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or blocks")
            }
            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content { start: start_of(text), blocks: 1, ..Content::default() })
            }
            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::default())
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut blocks: A) -> Result<Content, A::Error> {
                #[derive(Deserialize)]
                struct Block<'a> {
                    #[serde(default, borrow)]
                    text: Option<Cow<'a, str>>,
                    #[serde(default)]
                    id: Option<String>,
                    #[serde(default)]
                    tool_use_id: Option<String>,
                }
                let mut content = Content::default();
                while let Some(block) = blocks.next_element::<Block<'_>>()? {
                    if let Some(text) = block.text.filter(|_| content.start.is_empty()) {
                        content.start = start_of(&text);
                    }
                    content.blocks += 1;
                    content.calls.extend(block.id);
                    content.results.extend(block.tool_use_id);
                }
                Ok(content)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

fn start_of(text: &str) -> String {
    text.trim_start().chars().take(START_CHARS).collect()
}

impl EntryHead {
    fn parent(&self) -> Option<&str> {
        self.parent_uuid.as_deref().or(self.logical_parent_uuid.as_deref())
    }

    fn results(&self) -> &[String] {
        self.message.as_ref().map_or(&[], |message| &message.content.results)
    }

    fn message_id(&self) -> Option<&str> {
        self.message.as_ref()?.id.as_deref().filter(|_| self.r#type == "assistant")
    }

    /// A message that begins a turn. One of the program's own begins a turn too, but names it by the answer.
    fn is_prompt(&self) -> bool {
        let hidden = self.is_meta || self.is_compact_summary || !self.results().is_empty();
        self.r#type == "user" && !hidden && texts::begins_turn(self.start())
    }

    fn start(&self) -> &str {
        self.message.as_ref().map_or("", |message| &message.content.start)
    }

    fn items(&self) -> usize {
        match self.r#type.as_str() {
            "assistant" => self.message.as_ref().map_or(0, |message| message.content.blocks),
            "user" => usize::from(self.is_prompt()),
            _ => 0,
        }
    }

    /// Whether the translation may make something of it.
    fn is_shown(&self) -> bool {
        matches!(self.r#type.as_str(), "user" | "assistant" | "system" | "attachment")
    }
}

struct FileEntry {
    offset: u64,
    head: EntryHead,
    line: Vec<u8>,
}

/// The newest page before `before` with at least `items_min` items, or as much as should be held at once, or all
/// there is.
pub(super) fn read(file: &File, before: Option<u64>, items_min: usize, of_sub_agent: bool) -> io::Result<EntryPage> {
    let len = file.metadata()?.len();
    // The file may have become shorter since the cursor was given out.
    let before = before.filter(|cursor| *cursor < len);
    let end = before.unwrap_or(len);
    let mut walk = ChainWalk::new(items_min);
    if let Some(cursor) = before
        && let Some(next) = line_at(file, cursor)?.and_then(|line| json::parse::<EntryHead>(&line).ok())
    {
        // The page continues the chain of the newer page: from the entry at the cursor up, not from the end of the
        // file, which may belong to another branch.
        walk.goes_on = !next.is_prompt();
        walk.wanted = next.parent().map(str::to_owned);
    }
    let mut from = end;
    for _ in 0..BREAKS_MAX {
        let mut lines = BackwardLines::new(file, from);
        while !walk.is_done() {
            let Some((offset, line)) = lines.next_line()? else { break };
            if walk.is_beyond(offset) {
                break;
            }
            // A line that is no entry (a snapshot of the program's, garbage) costs only itself.
            let Ok(head) = json::parse::<EntryHead>(&line) else { continue };
            if head.uuid.is_some() && head.is_sidechain == of_sub_agent {
                walk.take(FileEntry { offset, head, line });
            }
        }
        // The entry that the chain continues with is not in the file, or too distant. What stands before the last entry
        // that was found is taken instead: to show too much is better than to lose the beginning of a conversation.
        match walk.repair() {
            Some(offset) => from = offset,
            None => break,
        }
    }
    Ok(walk.finish())
}

/// The way up the chain, from the newest entry to older ones.
struct ChainWalk {
    items_min: usize,
    items: usize,
    /// Of the entries held that are on the chain, and of those beside it since its last.
    bytes: usize,
    bytes_beside: usize,
    /// The entry the chain goes on with; none at its end, where any will do.
    wanted: Option<String>,
    /// Newest first. Whether it is on the chain, or may stand beside it.
    entries: Vec<(FileEntry, bool)>,
    /// Where the page begins, once that is known.
    cut: Option<u64>,
    /// Nothing stands before the cut.
    is_first: bool,
    within: Option<TurnOpening>,
    /// The message of the model whose first block we are at, or have passed last.
    last_message: Option<(String, u64, Option<String>)>,
    goes_on: bool,
    done: bool,
    /// Where to go on if the chain turns out to be broken: the last entry found on it.
    last_on_chain: Option<u64>,
    repaired_at: Option<u64>,
    passed_others: bool,
}

impl ChainWalk {
    fn new(items_min: usize) -> Self {
        Self {
            items_min,
            items: 0,
            bytes: 0,
            bytes_beside: 0,
            wanted: None,
            entries: Vec::new(),
            cut: None,
            is_first: true,
            within: None,
            last_message: None,
            goes_on: false,
            done: false,
            last_on_chain: None,
            repaired_at: None,
            passed_others: false,
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_full(&self) -> bool {
        self.items >= self.items_min || self.bytes >= PAGE_BYTES_MAX
    }

    /// Too far from the last entry found for the one before it.
    fn is_beyond(&self, offset: u64) -> bool {
        self.last_on_chain.is_some_and(|last| last.saturating_sub(offset) > SEARCH_BYTES_MAX)
    }

    fn take(&mut self, entry: FileEntry) {
        let on_chain = match &self.wanted {
            Some(wanted) => entry.head.uuid.as_ref() == Some(wanted),
            None => true,
        };
        if !on_chain {
            // An entry beside the chain is of an abandoned branch, or of a parallel tool of a message on the chain.
            // Which of the two is known only when that message was found, which stands before it: so it is kept until
            // `finish`.
            self.passed_others = true;
            if self.cut.is_none() && (entry.head.message_id().is_some() || !entry.head.results().is_empty()) {
                self.stands_beside(entry);
            }
            return;
        }
        self.passed_others = false;
        self.bytes_beside = 0;
        self.last_on_chain = Some(entry.offset);
        let parent = entry.head.parent().map(str::to_owned);
        let at_root = parent.is_none();
        self.wanted = parent;
        self.visit(entry);
        if at_root {
            self.done = true;
        }
    }

    fn stands_beside(&mut self, entry: FileEntry) {
        // Tools that run in parallel bring little between two entries of the chain. More than that is a whole branch,
        // which `finish` would drop anyway; it must not be held in memory until then.
        self.bytes_beside = self.bytes_beside.saturating_add(entry.line.len());
        if self.bytes_beside <= BESIDE_BYTES_MAX {
            self.entries.push((entry, false));
        } else {
            let last = self.last_on_chain.unwrap_or(u64::MAX);
            self.entries.retain(|(entry, on_chain)| *on_chain || entry.offset > last);
        }
    }

    fn visit(&mut self, entry: FileEntry) {
        let head = &entry.head;
        if let Some(message) = head.message_id() {
            self.last_message = Some((message.to_owned(), entry.offset, head.timestamp.clone()));
        }
        let prompt = head.is_prompt();
        if self.cut.is_some() {
            // The page is complete and begins in the middle of a turn. The walk goes on only to learn how that turn
            // began, because its items carry that turn's id.
            if prompt {
                self.within = Some(self.opening(&entry));
                self.done = true;
            }
            return;
        }
        // Going up, a tool's result comes right before the message that answers it. So the last message passed begins
        // here: none of its blocks stands further up, and a cut before it tears nothing.
        let message_begins = !head.results().is_empty();
        if message_begins
            && self.is_full()
            && let Some((_, offset, _)) = &self.last_message
        {
            self.cut = Some(*offset);
            self.is_first = false;
            return;
        }
        self.items += head.items();
        let offset = entry.offset;
        if head.is_shown() {
            self.bytes += entry.line.len();
            self.entries.push((entry, true));
        }
        // A message of the user is the best cut: the turn is whole.
        if prompt && self.is_full() {
            self.cut = Some(offset);
            self.is_first = self.wanted.is_none();
            self.done = true;
        }
    }

    fn opening(&self, entry: &FileEntry) -> TurnOpening {
        // A turn that the program began because a sub-agent reported is named by its first model message, as it was
        // live.
        let by_program = texts::is_report(entry.head.start());
        match (&self.last_message, by_program) {
            (Some((message, _, timestamp)), true) => TurnOpening { id: message.clone(), timestamp: timestamp.clone() },
            _ => {
                TurnOpening { id: entry.head.uuid.clone().unwrap_or_default(), timestamp: entry.head.timestamp.clone() }
            }
        }
    }

    /// Where to read again after the file ended in the middle of the chain. None if nothing is broken, or if it was
    /// repaired at this entry already: a file whose entries name each other in a circle must not be read for ever.
    fn repair(&mut self) -> Option<u64> {
        let broken = !self.done && self.wanted.is_some() && self.passed_others;
        let offset = self.last_on_chain.filter(|offset| broken && self.repaired_at != Some(*offset))?;
        self.repaired_at = Some(offset);
        self.wanted = None;
        self.passed_others = false;
        // What was kept from further up is read again, now as part of the chain.
        self.entries.retain(|(entry, on_chain)| *on_chain || entry.offset >= offset);
        Some(offset)
    }

    fn finish(self) -> EntryPage {
        // Beside the chain only what belongs to its messages is shown: further blocks of a message, and results of its
        // calls. The calls are collected after the messages, since a call may itself stand beside the chain.
        let first = self.cut.unwrap_or(0);
        let mut messages = HashSet::new();
        let mut calls = HashSet::new();
        for (entry, on_chain) in &self.entries {
            if *on_chain && let Some(message) = entry.head.message_id() {
                messages.insert(message.to_owned());
            }
        }
        for (entry, _) in &self.entries {
            if entry.head.message_id().is_some_and(|message| messages.contains(message)) {
                calls.extend(entry.head.message.iter().flat_map(|message| message.content.calls.clone()));
            }
        }
        let mut entries: Vec<_> = self
            .entries
            .into_iter()
            .filter(|(entry, on_chain)| {
                let of_message = entry.head.message_id().is_some_and(|message| messages.contains(message));
                let of_call = entry.head.results().iter().any(|call| calls.contains(call));
                entry.offset >= first && (*on_chain || of_message || of_call)
            })
            .map(|(entry, _)| (entry.offset, entry.line))
            .collect();
        // Repairing reads a part of the file twice.
        entries.sort_by_key(|(offset, _)| *offset);
        entries.dedup_by_key(|(offset, _)| *offset);
        EntryPage {
            entries: entries.into_iter().map(|(_, line)| line).collect(),
            older: self.cut.filter(|_| !self.is_first),
            within: self.within,
            goes_on: self.goes_on,
        }
    }
}

/// The whole line that begins at an offset.
fn line_at(file: &File, offset: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let mut step = vec![0; LINE_STEP_BYTES.max(line.len())];
        let read = file.read_at(&mut step, offset + line.len() as u64)?;
        step.truncate(read);
        let end = memchr::memchr(b'\n', &step);
        line.extend_from_slice(&step[..end.unwrap_or(read)]);
        if end.is_some() || read == 0 {
            return Ok((!line.is_empty()).then_some(line));
        }
        if line.len() > LINE_BYTES_MAX {
            return Ok(None);
        }
    }
}
