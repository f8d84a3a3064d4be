//! The ring of renderings: what is forgotten is made again, and a window that has the earlier one loses nothing.

use protocol::{BlockPatch, Origin, ToolContent, TurnId};

use super::*;
use crate::outbox::{Frames, Outbox};

pub(crate) fn update(id: &str, text: impl Into<Text>, status: UpsertStatus) -> ItemUpdate {
    ItemUpdate {
        turn_id: TurnId::parse("t").unwrap(),
        session_id: session(),
        item_id: ItemId::parse(id).unwrap(),
        parent_item_id: None,
        source_timestamp: Timestamp::default(),
        emitted_at: Timestamp::default(),
        status,
        error: None,
        body: ItemBody::Message { text: text.into(), origin: Origin::Agent },
    }
}

pub(crate) fn session() -> SessionId {
    SessionId::parse("codex:1").unwrap()
}

fn final_item(number: usize, cache: &Arc<RenderingCache>) -> Arc<ItemCell> {
    ItemCell::new(update(&format!("i-{number}"), "words", UpsertStatus::Complete), 1, 0, cache)
}

fn is_made(cell: &ItemCell) -> bool {
    lock(&cell.making).made.is_some()
}

fn blocks(upsert: &Upsert) -> &BlockPatch {
    upsert.view.blocks.as_ref().unwrap()
}

/// What a `view` window is sent of the item now.
fn received(cell: &ItemCell, seq: u64, sent: &mut Sent) -> Upsert {
    let bytes = cell.frame(&session(), seq, WindowKind::View, sent).into_bytes();
    let frame: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    serde_json::from_value(frame["payload"].clone()).unwrap()
}

#[test]
fn whether_more_is_to_come_is_judged_by_what_a_window_was_sent() {
    let (cache, text) = (Arc::default(), Text::from("words"));
    let cell = ItemCell::new(update("i", text.clone(), UpsertStatus::Update), 1, 0, &cache);
    let (mut sent, mut opened) = (Sent::default(), Sent::default());
    received(&cell, 1, &mut sent);
    cell.entry(WindowKind::View, &mut opened);
    cell.replace(update("i", text.clone(), UpsertStatus::Complete), 2);
    assert!(!sent.is_over && !opened.is_over, "or all would be sent again from its start");
    received(&cell, 2, &mut sent);
    cell.entry(WindowKind::View, &mut opened);
    assert!(sent.is_over && opened.is_over);
}

#[test]
fn a_text_that_ends_while_its_frame_is_made_is_not_sent_again_from_its_start() {
    let (cache, text) = (Arc::default(), Text::from("```rust\nlet x = 1;\n"));
    let cell = ItemCell::new(update("i", text.clone(), UpsertStatus::Update), 1, 0, &cache);
    cell.replace(update("i", text, UpsertStatus::Complete), 2);
    let mut sent = Sent::default();
    // The frame in place of the first change shows the second already, which is still in the queue.
    assert!(!blocks(&received(&cell, 1, &mut sent)).html.is_empty());
    assert!(!sent.is_over, "what the window has is remembered until then");
    assert!(blocks(&received(&cell, 2, &mut sent)).html.is_empty());
    assert!(sent.is_over);
}

#[test]
fn only_the_newest_renderings_of_finished_items_are_kept() {
    let cache = Arc::default();
    let cells: Vec<_> = (0..RENDERINGS_KEPT + 10).map(|number| final_item(number, &cache)).collect();
    for cell in &cells {
        cell.entry(WindowKind::View, &mut Sent::default());
    }
    let forgotten = cells.iter().take_while(|cell| !is_made(cell)).count();
    assert_eq!(forgotten, 10, "the oldest are forgotten");
    assert!(cells[forgotten..].iter().all(|cell| is_made(cell)));
    // One that was forgotten is made again and cached again; the ring stays as large as it is.
    let entry = cells[0].entry(WindowKind::View, &mut Sent::default());
    assert!(blocks(&entry).html.concat().contains("words"));
    assert_eq!(cells.iter().filter(|cell| is_made(cell)).count(), RENDERINGS_KEPT);
}

#[test]
fn of_long_items_fewer_are_kept_at_hand() {
    let cache: Arc<RenderingCache> = Arc::default();
    let text = Text::from("word ".repeat(RENDERED_BYTES_KEPT / 20).as_str());
    let item =
        |number| ItemCell::new(update(&format!("i-{number}"), text.clone(), UpsertStatus::Complete), 1, 0, &cache);
    let cells: Vec<_> = (0..8).map(item).collect();
    for cell in &cells {
        cell.frame(&session(), 1, WindowKind::Plain, &mut Sent::default());
    }
    let made: Vec<_> = cells.iter().map(|cell| is_made(cell)).collect();
    assert_eq!(made, [false, false, false, false, false, true, true, true]);
}

#[test]
fn what_still_grows_is_not_forgotten_and_a_crowd_of_such_becomes_fewer_again_once_they_are_done() {
    let cache: Arc<RenderingCache> = Arc::default();
    let text = Text::from("words");
    let crowd: Vec<_> = (0..RENDERINGS_KEPT + 50)
        .map(|number| ItemCell::new(update(&format!("g-{number}"), text.clone(), UpsertStatus::Update), 1, 0, &cache))
        .collect();
    for cell in &crowd {
        cell.entry(WindowKind::View, &mut Sent::default());
    }
    assert!(crowd.iter().all(|cell| is_made(cell)));
    for cell in &crowd {
        cell.replace(update(cell.id().as_str(), text.clone(), UpsertStatus::Complete), 2);
    }
    let later: Vec<_> = (0..60).map(|number| final_item(number, &cache)).collect();
    for cell in &later {
        cell.entry(WindowKind::View, &mut Sent::default());
    }
    let made = crowd.iter().chain(&later).filter(|cell| is_made(cell)).count();
    assert_eq!(made, RENDERINGS_KEPT);
    assert!(later.iter().all(|cell| is_made(cell)));
}

#[test]
fn an_item_that_is_gone_leaves_its_place_in_the_ring() {
    let cache: Arc<RenderingCache> = Arc::default();
    for number in 0..3 * RENDERINGS_KEPT {
        final_item(number, &cache).entry(WindowKind::View, &mut Sent::default());
    }
    assert_eq!(cache.lock().len(), RENDERINGS_KEPT);
}

#[test]
fn a_window_with_a_forgotten_rendering_gets_the_whole_of_the_next_and_no_text_twice() {
    let (cache, mut sent) = (Arc::default(), Sent::default());
    let source = "One.\n\nTwo and\n\nthree";
    let text = Text::from(source);
    let full: Vec<String> = rendering::markdown(source).iter().map(ToString::to_string).collect();
    let cell = ItemCell::new(update("a", text.clone(), UpsertStatus::Update), 1, 0, &cache);
    received(&cell, 1, &mut sent);
    assert!(blocks(&received(&cell, 2, &mut sent)).html.concat().len() < full.concat().len(), "it has all of it");
    assert!(cell.forget_rendering());
    cell.replace(update("a", text.clone(), UpsertStatus::Complete), 3);
    let again = received(&cell, 3, &mut sent);
    let BlockPatch { from, keep, html } = blocks(&again);
    let html: Vec<String> = html.iter().map(ToString::to_string).collect();
    assert_eq!((*from, *keep, html), (0, 0, full), "its marks were of another rendering");
    assert_eq!(again.view.content_from, Some(source.len()));
}

#[test]
fn a_text_that_starts_over_is_sent_whole_once_and_then_goes_on() {
    let (cache, mut sent) = (Arc::default(), Sent::default());
    let cell = ItemCell::new(update("a", "Another\n\ntext", UpsertStatus::Update), 1, 0, &cache);
    received(&cell, 1, &mut sent);
    let text = Text::from("Quite\n\nnew");
    cell.replace(update("a", text.clone(), UpsertStatus::Update), 2);
    let whole = received(&cell, 2, &mut sent);
    assert_eq!((whole.view.content_from, blocks(&whole).from), (None, 0));
    cell.replace(update("a", text.clone(), UpsertStatus::Complete), 3);
    let rest = received(&cell, 3, &mut sent);
    assert_eq!(rest.view.content_from, Some("Quite\n\nnew".len()));
    assert!(blocks(&rest).html.concat().len() < blocks(&whole).html.concat().len(), "nothing is sent twice: {rest:?}");
}

/// Someone makes a frame of the item, until what is returned is dropped.
fn someone_at_work(cell: &Arc<ItemCell>) -> impl Drop + use<> {
    struct Work(Option<std::sync::mpsc::SyncSender<()>>, Option<std::thread::JoinHandle<()>>);
    impl Drop for Work {
        fn drop(&mut self) {
            drop(self.0.take());
            self.1.take().map(std::thread::JoinHandle::join);
        }
    }
    let cell = Arc::clone(cell);
    let (begun, has_begun) = std::sync::mpsc::sync_channel(0);
    let (end, is_over) = std::sync::mpsc::sync_channel::<()>(0);
    let thread = std::thread::spawn(move || {
        let _making = lock(&cell.making);
        begun.send(()).unwrap();
        is_over.recv().unwrap_err();
    });
    has_begun.recv().unwrap();
    Work(Some(end), Some(thread))
}

#[test]
fn a_session_never_waits_for_who_renders_its_items() {
    let cache = Arc::default();
    let cell = ItemCell::new(update("a", "words", UpsertStatus::Update), 1, 0, &cache);
    cell.entry(WindowKind::View, &mut Sent::default());
    let work = someone_at_work(&cell);
    cell.replace(update("a", "other words", UpsertStatus::Complete), 2);
    assert_eq!((cell.seq(), cell.is_final()), (2, true));
    assert!(cell.weight_bytes() > 0);
    assert!(!cell.forget_rendering(), "someone is at it");
    drop(work);
    assert!(cell.forget_rendering() && !is_made(&cell));
}

#[tokio::test]
async fn while_one_item_is_rendered_every_window_that_shows_others_goes_on() {
    let cache = Arc::default();
    let slow = ItemCell::new(update("slow", "long words", UpsertStatus::Complete), 1, 0, &cache);
    let quick = ItemCell::new(update("quick", "words", UpsertStatus::Complete), 2, 0, &cache);
    let waiting = Outbox::new(WindowKind::View);
    let work = someone_at_work(&slow);
    waiting.push_item(&session(), 1, &slow);
    let mut frames = Frames::new(waiting);
    // One thread for all: nobody gets it if one waits on it.
    let others = async {
        for _ in 0..20 {
            let outbox = Outbox::new(WindowKind::View);
            outbox.push_item(&session(), 2, &quick);
            let frame = Frames::new(outbox).next().await.unwrap();
            assert!(std::str::from_utf8(&frame.into_bytes()).unwrap().contains("words"));
        }
    };
    tokio::select! {
        biased;
        _ = frames.next() => panic!("it is still being rendered"),
        () = others => {}
    }
    drop(work);
    let frame = frames.next().await.unwrap();
    assert!(std::str::from_utf8(&frame.into_bytes()).unwrap().contains("long words"), "and nothing is lost");
}

#[test]
fn what_takes_long_is_not_made_where_others_wait() {
    let cache = Arc::default();
    let check = |text: &Text, kind| {
        let cell = ItemCell::new(update("a", text.clone(), UpsertStatus::Update), 1, 0, &cache);
        cell.frame_at_once(&session(), 1, kind, &mut Sent::default()).map(|_| ())
    };
    let (short, long) = (Text::from("words"), Text::from("words ".repeat(BYTES_AT_ONCE)));
    for kind in [WindowKind::Plain, WindowKind::View] {
        assert_eq!(check(&short, kind), Ok(()));
        assert_eq!(check(&long, kind), Err(NotNow::Long));
    }
    // Of what is rendered already only the rest counts.
    let cell = ItemCell::new(update("a", long.clone(), UpsertStatus::Update), 1, 0, &cache);
    let mut sent = Sent::default();
    cell.frame(&session(), 1, WindowKind::View, &mut sent);
    lock(&cell.making).took = Duration::ZERO;
    assert!(cell.frame_at_once(&session(), 2, WindowKind::View, &mut sent).is_ok());
    // And who took long the last time is not believed to be quick.
    lock(&cell.making).took = 2 * MAKING_TIME_SHORT;
    assert_eq!(cell.frame_at_once(&session(), 3, WindowKind::View, &mut sent).unwrap_err(), NotNow::Long);
}

#[test]
fn plain_windows_that_hold_one_long_message_share_its_bytes_and_nothing_is_kept_when_they_have_read_it() {
    let cache = Arc::default();
    let cell = ItemCell::new(update("i", "words ".repeat(BYTES_AT_ONCE), UpsertStatus::Complete), 1, 0, &cache);
    let frame = || cell.frame(&session(), 1, WindowKind::Plain, &mut Sent::default()).into_bytes();
    let first = frame();
    let others: Vec<_> = (0..9)
        .map(|_| {
            // What was rendered may be forgotten between two windows.
            cell.forget_rendering();
            frame()
        })
        .collect();
    assert!(others.iter().all(|other| other.as_ptr() == first.as_ptr()), "it is the same memory");
    drop((first, others));
    assert!(lock(&cell.making).long_plain.as_ref().unwrap().1.get().is_none());
    // A newer state is another message.
    let old = frame();
    cell.replace(update("i", "other ".repeat(BYTES_AT_ONCE), UpsertStatus::Complete), 2);
    assert_ne!(frame(), old);
}

#[test]
fn code_and_edits_are_never_made_where_others_wait() {
    let cache = Arc::default();
    let at_once =
        |cell: &ItemCell, seq, sent: &mut Sent| cell.frame_at_once(&session(), seq, WindowKind::View, sent).map(|_| ());
    for text in ["```scss\n-a", "words\n\n- item\n\n  ~~~\n  code", "> ````\n> x"] {
        let cell = ItemCell::new(update("code", text, UpsertStatus::Update), 1, 0, &cache);
        assert_eq!(at_once(&cell, 1, &mut Sent::default()), Err(NotNow::Long), "{text:?}");
        cell.frame(&session(), 1, WindowKind::View, &mut Sent::default());
        assert_eq!(at_once(&cell, 1, &mut Sent::default()), Ok(()), "what is made is given to the next window");
        assert_eq!(at_once(&cell, 2, &mut Sent::default()), Err(NotNow::Long), "{text:?}, once more");
    }
    // A fence that comes in two parts, and a text that is replaced.
    let cell = ItemCell::new(update("code", "words ``", UpsertStatus::Update), 1, 0, &cache);
    assert_eq!(at_once(&cell, 1, &mut Sent::default()), Ok(()));
    cell.replace(update("code", "```\n and more than there was", UpsertStatus::Update), 2);
    assert_eq!(at_once(&cell, 2, &mut Sent::default()), Err(NotNow::Long));

    let content = ToolContent::Diff { path: "x.less".into(), old_text: None, new_text: "-a".into(), start_line: None };
    let tool = Arc::new(ToolDetail { content: vec![content], ..ToolDetail::default() });
    let body = ItemBody::ToolCall {
        name: "Edit".into(),
        arguments: Arc::default(),
        call_id: protocol::CallId::parse("c").unwrap(),
        output: None,
        is_error: None,
        tool: Some(tool),
    };
    let edit = ItemUpdate { body, ..update("edit", "", UpsertStatus::Update) };
    let (cell, mut sent) = (ItemCell::new(edit.clone(), 1, 0, &cache), Sent::default());
    assert_eq!(at_once(&cell, 1, &mut sent), Err(NotNow::Long));
    cell.frame(&session(), 1, WindowKind::View, &mut sent);
    lock(&cell.making).took = Duration::ZERO;
    cell.replace(edit, 2);
    assert_eq!(at_once(&cell, 2, &mut sent), Ok(()), "the window has the edit");
}
