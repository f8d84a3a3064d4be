//! What was live is history later, and goes on from there.

use protocol::{Continuity, ToolKind};
use providers::{History, HistoryWanted, Provider, ProviderError, StoredSession};
use upserts::{ItemBody, ItemUpdate};

use super::{Bench, detail, output};
use crate::listener::{Listener, soon};

fn items(history: &History) -> Vec<ItemUpdate> {
    upserts::fold(history.events.clone(), protocol::Timestamp::default())
}

fn comparable(items: &[&ItemUpdate]) -> Vec<String> {
    let line = |item: &&ItemUpdate| {
        let mut body = item.body.clone();
        // Live we know that nobody was asked; the file only knows that a permission was given.
        if let ItemBody::ToolCall { tool: Some(tool), .. } = &mut body {
            let mut plain = protocol::ToolDetail::clone(tool);
            plain.permission = None;
            plain.started_at = None;
            plain.ended_at = None;
            *tool = plain.into();
        }
        format!("{} {} {:?} {:?} {body:?}", item.turn_id, item.item_id, item.parent_item_id, item.status)
    };
    items.iter().map(line).collect()
}

/// TC-3.1b, TC-2.3a, TC-2.5b.
#[tokio::test]
async fn history_after_a_restart_is_what_was_live_and_the_next_message_resumes() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let prompts = [
        "think:hm\nsay:one",
        "read:README.md\nsay:two",
        "parallel:bash:echo a || bash:echo b\nsay:three",
        "write:x.txt=1\\n\nedit:x.txt=1=>2\nsay:four",
        "bash:exit 4\nsay:five",
        "/context",
        "error:529*1\nsay:six",
        "/compact",
        "say:seven",
        "error:400",
    ];
    for prompt in prompts {
        let turn = session.send(prompt).await.unwrap();
        session.until_end_of(&turn).await;
    }
    let cancelled = session.send("say:part\nhold:never").await.unwrap();
    session.until("the part", |session| session.text().contains("part")).await;
    session.session.cancel().await.unwrap();
    session.until_end_of(&cancelled).await;
    soon("the end", provider.shutdown()).await;

    let provider = bench.provider();
    let loaded = soon("the history", provider.load_session(bench.stored(&session.agent_id))).await.unwrap();
    assert!(!loaded.opened.session.is_alive(), "nothing is started to show history");
    assert_eq!(loaded.history.continuity, Continuity::Dormant);
    let live: Vec<_> = session.items.iter().collect();
    let recorded = items(&loaded.history);
    let recorded: Vec<_> = recorded.iter().collect();
    for (recorded, live) in comparable(&recorded).iter().zip(comparable(&live)) {
        assert_eq!(*recorded, live);
    }
    assert_eq!(recorded.len(), live.len());
    let turns: Vec<_> = loaded.history.turns.iter().map(|turn| (turn.turn_id.clone(), turn.status)).collect();
    assert_eq!(turns.len(), prompts.len() + 1);
    assert_eq!(turns[turns.len() - 2].1, protocol::TurnRecordStatus::Error);
    assert_eq!(turns[turns.len() - 1], (cancelled, protocol::TurnRecordStatus::Cancelled));

    let mut session = Listener::new(loaded.opened);
    let calls = bench.model.calls();
    let turn = session.send("say:resumed").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["resumed"]);
    assert_eq!(session.continuity, [Continuity::Resumed]);
    assert!(bench.model.calls() > calls);
    soon("the end", provider.shutdown()).await;
}

/// What the program itself does not keep cannot be in its history: an answer that broke off and was begun again, of
/// which a word is shown, and a thought that was cut short by a cancel, which stays on the screen. All else is the
/// same.
#[tokio::test]
async fn history_lacks_only_what_the_program_did_not_keep() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let script = "say:half an answer\nhold:shown\nerror:cut*1\nsay:whole";
    let broken = session.send(script).await.unwrap();
    // Of an answer that breaks off before any of it is shown there is nothing to say.
    session.until("the half", |session| session.text().contains("half an answer")).await;
    bench.model.release("shown");
    session.until_end_of(&broken).await;
    assert!(session.is_completed(&broken), "{session:#?}");
    assert_eq!(session.answers(&broken), ["half an answer\nwhole"]);
    let thought = session.send("think:half a thought\nhold:never").await.unwrap();
    session.until("the thought", |session| session.text().contains("half a thought")).await;
    session.session.cancel().await.unwrap();
    session.until_end_of(&thought).await;
    assert!(session.is_cancelled(&thought), "{session:#?}");
    let last = session.send("say:and on").await.unwrap();
    session.until_end_of(&last).await;
    soon("the end", provider.shutdown()).await;

    let is_notice_of_break =
        |item: &&ItemUpdate| item.body.text().is_some_and(|text| text.to_string().contains("broke off here"));
    let is_thought = |item: &&ItemUpdate| matches!(item.body, ItemBody::Thinking { .. });
    let (unkept, live): (Vec<_>, Vec<_>) =
        session.items.iter().partition(|item| is_notice_of_break(item) || is_thought(item));
    let unkept: Vec<_> = unkept.iter().map(|item| output(item)).collect();
    assert_eq!(unkept, ["The answer broke off here and was begun again.", "half a thought"]);
    let provider = bench.provider();
    let loaded = soon("the history", provider.load_session(bench.stored(&session.agent_id))).await.unwrap();
    let recorded = items(&loaded.history);
    let recorded: Vec<_> = recorded.iter().collect();
    assert_eq!(comparable(&recorded), comparable(&live));
    assert!(live.iter().any(|item| output(item).contains("tries again")), "{live:#?}");
    soon("the end", provider.shutdown()).await;
}

/// Pages of the history are of the file that was opened, whatever the agent calls the conversation now.
#[tokio::test]
async fn after_clear_older_pages_are_still_those_of_what_was_opened() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let first = session.agent_id.clone();
    for round in 0..4 {
        let turn = session.send(&format!("say:round {round}")).await.unwrap();
        session.until_end_of(&turn).await;
    }
    soon("the end", provider.shutdown()).await;

    let provider = bench.provider();
    let open = StoredSession { items_max: 2, ..bench.stored(&first) };
    let loaded = soon("the history", provider.load_session(open)).await.unwrap();
    let cursor = loaded.history.older.unwrap();
    let mut session = Listener::new(loaded.opened);
    let clear = session.send("/clear").await.unwrap();
    session.until_end_of(&clear).await;
    session.until("another id", |session| session.agent_id != first).await;
    let turn = session.send("say:in the new file").await.unwrap();
    session.until_end_of(&turn).await;
    let older = soon("the page", session.session.older_history(&cursor, 100)).await.unwrap();
    let shown: Vec<_> = items(&older).iter().map(output).collect();
    assert_eq!(shown, ["say:round 0", "round 0", "say:round 1", "round 1", "say:round 2", "round 2"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_session_that_was_never_prompted_begins_under_its_id() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let session = bench.create(&provider).await;
    let id = session.agent_id.clone();
    soon("the end", provider.shutdown()).await;
    let provider = bench.provider();
    let open = StoredSession { prompted: false, ..bench.stored(&id) };
    let loaded = soon("the session", provider.load_session(open)).await.unwrap();
    assert!(items(&loaded.history).is_empty());
    let mut session = Listener::new(loaded.opened);
    let turn = session.send("say:first words").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["first words"]);
    assert_eq!((session.agent_id.as_str(), &session.continuity[..]), (id.as_str(), &[Continuity::Live][..]));
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_sub_agent_is_nested_under_its_call_live_and_in_history() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("agent:bash:echo deep\\nsay:sub done\nsay:started it").await.unwrap();
    session.until_end_of(&turn).await;
    session
        .until("the sub-agent's report", |session| session.turns.iter().filter(|turn| turn.is_end()).count() == 2)
        .await;
    let nested = |items: &[ItemUpdate]| {
        let call =
            items.iter().find(|item| matches!(&item.body, ItemBody::ToolCall { name, .. } if &**name == "Agent"));
        let call = call.unwrap_or_else(|| panic!("{items:#?}"));
        assert_eq!(detail(call).kind, ToolKind::Agent);
        assert_eq!(output(call), "sub done");
        let nested: Vec<_> = items.iter().filter(|item| item.parent_item_id.as_ref() == Some(&call.item_id)).collect();
        assert!(nested.iter().all(|item| item.turn_id == turn));
        nested.iter().map(|item| (item.item_id.clone(), output(item))).collect::<Vec<_>>()
    };
    let live = nested(&session.items);
    assert_eq!(live.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["deep", "sub done"]);
    soon("the end", provider.shutdown()).await;
    let provider = bench.provider();
    let loaded = soon("the history", provider.load_session(bench.stored(&session.agent_id))).await.unwrap();
    assert_eq!(nested(&items(&loaded.history)), live);
    let ids = |items: &[ItemUpdate]| {
        let mut ids: Vec<_> = items.iter().map(|item| (item.turn_id.clone(), item.item_id.clone())).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&items(&loaded.history)), ids(&session.items));
    soon("the end", provider.shutdown()).await;
}

/// Never an old transcript over a fresh memory without saying so.
#[tokio::test]
async fn a_conversation_the_agent_has_lost_is_shown_as_a_copy() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("say:remember").await.unwrap();
    session.until_end_of(&turn).await;
    soon("the end", provider.shutdown()).await;
    let provider = bench.provider();
    let loaded = soon("the history", provider.load_session(bench.stored(&session.agent_id))).await.unwrap();
    std::fs::remove_dir_all(bench.home.path().join(".claude/projects")).unwrap();
    let mut session = Listener::new(loaded.opened);
    let turn = session.send("say:what?").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.continuity, [Continuity::Copy]);
    soon("the end", provider.shutdown()).await;

    std::fs::remove_dir_all(bench.home.path().join(".claude/projects")).unwrap();
    let lost = bench.provider().load_session(bench.stored(&session.agent_id)).await;
    let Err(ProviderError::LoadFailed { detail }) = lost else { panic!("{lost:?}") };
    assert!(detail.contains("no longer has this conversation"), "{detail}");
}

/// Claude Code deletes old conversations. What our journal has of one stays usable.
#[tokio::test]
async fn a_conversation_of_the_journal_that_the_agent_has_lost_goes_on_under_another_id() {
    let bench = Bench::new().await;
    let provider = bench.provider();
    let mut session = bench.create(&provider).await;
    let turn = session.send("say:remember").await.unwrap();
    session.until_end_of(&turn).await;
    soon("the end", provider.shutdown()).await;
    let old = session.agent_id.clone();
    let compared = |id| StoredSession { history: HistoryWanted::Compare, ..bench.stored(id) };

    let provider = bench.provider();
    let loaded = soon("the history", provider.load_session(compared(&old))).await.unwrap();
    assert_eq!((loaded.has_history, loaded.history.continuity), (true, Continuity::Dormant));
    assert_eq!(items(&loaded.history).len(), 2);
    soon("the end", provider.shutdown()).await;

    std::fs::remove_dir_all(bench.home.path().join(".claude/projects")).unwrap();
    let provider = bench.provider();
    let loaded = soon("the session", provider.load_session(compared(&old))).await.unwrap();
    assert_eq!((loaded.has_history, loaded.history.continuity), (false, Continuity::Copy));
    assert!(items(&loaded.history).is_empty());
    let mut session = Listener::new(loaded.opened);
    assert_eq!(session.agent_id, old, "nothing changes before a message");
    for text in ["say:on", "say:and on"] {
        let turn = session.send(text).await.unwrap();
        session.until_end_of(&turn).await;
        assert_eq!(session.answers(&turn), [&text[4..]]);
    }
    let new = session.agent_id.clone();
    assert_ne!(new, old);
    assert!(session.continuity.is_empty(), "it is a copy still: {:?}", session.continuity);
    soon("the end", provider.shutdown()).await;

    let provider = bench.provider();
    let stored = StoredSession { id: compared(&old).id, ..compared(&new) };
    let loaded = soon("the history", provider.load_session(stored)).await.unwrap();
    assert_eq!((loaded.has_history, loaded.history.turns.len()), (true, 2));
    let mut session = Listener::new(loaded.opened);
    let turn = session.send("say:after").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!((session.agent_id, &session.continuity[..]), (new, &[Continuity::Resumed][..]));
    soon("the end", provider.shutdown()).await;
}
