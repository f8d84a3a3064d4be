//! The real Claude Code behind the real server, as a browser meets them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::{
    ClientMessage, Origin, ServerMessage, SessionId, TurnEvent, TurnRecordStatus, TurnStatus, UpsertBody, UpsertStatus,
};
use testkit::scripted_model::ScriptedModel;
use testkit::{Screen, TestSetup, Window, within};

async fn send(window: &mut Window, session: &SessionId, content: &str) {
    let send = ClientMessage::SessionSend { session_id: session.clone(), content: content.into() };
    window.ask(&send).await;
}

/// The text of the agent.
fn text(screen: &Screen) -> String {
    screen.answers().join("\n")
}

fn ends(screen: &Screen) -> usize {
    screen.turns.iter().filter(|turn| turn.is_end()).count()
}

/// TC-2.2d, TC-8.1a, TC-8.1b: the user's turn, the answer as markdown, a tool call with its status, arguments and
/// result, and the thinking, all streamed.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_claude_code_streams_text_thinking_and_tools_to_the_window() {
    let model = ScriptedModel::start().await.unwrap();
    let setup = TestSetup::start_with(|builder| builder.with_claude(&model)).await;
    let mut window = setup.app.view_window().await;
    let session = setup.create(&mut window, "claude-code").await;
    let mut screen = Screen::open(&mut window, &session.id).await;

    send(&mut window, &session.id, "think:let me see\nsay:The **first** half\nhold:middle\nsay:and the rest\nbash:echo made > made.txt; cat made.txt\nsay:done").await;
    screen.until(&mut window, "the first half", |screen| text(screen).contains("half")).await;
    let half = screen.items.iter().find(|item| item.origin == Some(Origin::Agent)).unwrap();
    assert!(half.status != UpsertStatus::Complete && !half.text.contains("rest"), "it streams: {half:?}");
    assert!(half.blocks.concat().contains("<strong>first</strong>"), "as markdown: {half:?}");
    model.release("middle");
    screen.until(&mut window, "the end", |screen| ends(screen) == 1).await;

    let kinds: Vec<_> = screen.items.iter().map(|item| (item.origin, item.status)).collect();
    assert!(kinds.iter().all(|(_, status)| *status == UpsertStatus::Complete), "{kinds:?}");
    assert_eq!(kinds[0].0, Some(Origin::User));
    assert!(matches!(screen.items[1].last.body, UpsertBody::Thinking { .. }), "{:?}", screen.items[1]);
    assert_eq!(screen.items[1].text, "let me see");
    assert_eq!(screen.items[2].text, "The **first** half\nand the rest");
    let UpsertBody::ToolCall { tool_name, tool_arguments, tool_output_is_error, .. } = &screen.items[3].last.body
    else {
        panic!("{:?}", screen.items[3])
    };
    assert_eq!((tool_name.as_str(), *tool_output_is_error), ("Bash", Some(false)));
    assert_eq!(tool_arguments["command"], "echo made > made.txt; cat made.txt");
    let plain = Screen::open(&mut setup.app.window().await, &session.id).await;
    assert_eq!(plain.items[3].text.trim(), "made");
    assert_eq!(screen.items[4].text, "done");
}

/// TC-8.1c.
#[tokio::test(flavor = "multi_thread")]
async fn cancel_stops_claude_code_and_the_session_takes_the_next_message() {
    let model = ScriptedModel::start().await.unwrap();
    let setup = TestSetup::start_with(|builder| builder.with_claude(&model)).await;
    let mut window = setup.app.window().await;
    let session = setup.create(&mut window, "claude-code").await;
    let mut screen = Screen::open(&mut window, &session.id).await;
    send(&mut window, &session.id, "say:as far as this\nhold:never").await;
    screen.until(&mut window, "the beginning", |screen| text(screen).contains("as this")).await;
    window.ask(&ClientMessage::SessionCancel { session_id: session.id.clone() }).await;
    screen.until(&mut window, "the end", |screen| ends(screen) == 1).await;
    let end = screen.turns.iter().find(|turn| turn.is_end()).unwrap();
    assert!(matches!(end, TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. }), "{end:?}");
    assert!(screen.items.iter().all(|item| item.status == UpsertStatus::Complete), "{:?}", screen.items);
    send(&mut window, &session.id, "say:ready").await;
    screen.until(&mut window, "the next answer", |screen| ends(screen) == 2).await;
    assert!(text(&screen).contains("as far as this") && text(&screen).contains("ready"), "{}", text(&screen));
}

/// Processes of Claude Code itself in this directory. It leads its group and was started by a guardian; what it has forked
/// to become a tool, and what such a fork leaves behind, is not one.
fn claudes_in(directory: &Path) -> BTreeSet<i32> {
    let works_here = |path: &Path| {
        let here = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == directory);
        here && std::fs::read_link(path.join("exe")).is_ok_and(|program| program.ends_with("claude"))
    };
    // After its name: state, parent, group.
    let relations = |path: &Path| -> Option<(i32, i32)> {
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let found: Vec<(i32, i32, i32)> = processes
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(_, path)| works_here(path))
        .filter_map(|(pid, path)| relations(&path).map(|(parent, group)| (pid, parent, group)))
        .collect();
    let is_child = |parent: i32| found.iter().any(|(pid, ..)| *pid == parent);
    found.iter().filter(|(pid, parent, group)| pid == group && !is_child(*parent)).map(|(pid, ..)| *pid).collect()
}

/// Looks until asked to stop; the most that lived at one moment. A look at all processes takes a while, in which one may end
/// and the next begin, so one look proves nothing: whoever is there in two, one after the other, was there between them.
fn most_at_once(directory: &Path, watching: &AtomicBool) -> BTreeSet<i32> {
    let (mut most, mut last) = (BTreeSet::new(), BTreeSet::new());
    while watching.load(Ordering::Relaxed) {
        let seen = claudes_in(directory);
        let at_once: BTreeSet<i32> = seen.intersection(&last).copied().collect();
        if at_once.len() > most.len() {
            most = at_once;
        }
        last = seen;
    }
    most
}

/// Two processes on one session would fork its history. The killed server's Claude Code is in the middle of a turn and
/// takes seconds to exit; the next message comes at once.
#[tokio::test(flavor = "multi_thread")]
async fn after_the_server_was_killed_no_second_claude_code_starts_on_a_session_while_the_first_lives() {
    let model = ScriptedModel::start().await.unwrap();
    let mut setup = TestSetup::start_with(|builder| builder.with_claude(&model)).await;
    let project = setup.app.home().join("project").canonicalize().unwrap();
    let mut window = setup.app.window().await;
    let session = setup.create(&mut window, "claude-code").await;
    let mut screen = Screen::open(&mut window, &session.id).await;
    send(&mut window, &session.id, "say:remember this").await;
    screen.until(&mut window, "the first answer", |screen| ends(screen) == 1).await;
    send(&mut window, &session.id, "say:cut off\nhold:never").await;
    screen.until(&mut window, "the second answer", |screen| text(screen).contains("cut off")).await;
    let first = claudes_in(&project);
    assert_eq!(first.len(), 1);
    setup.until_kept("say:cut off hold:never").await;

    setup.app.kill().await;
    let watching = Arc::new(AtomicBool::new(true));
    let watcher = {
        let (watching, project) = (Arc::clone(&watching), project.clone());
        std::thread::spawn(move || most_at_once(&project, &watching))
    };
    let setup = setup.again_with(|builder| builder.with_claude(&model)).await;
    assert_eq!(claudes_in(&project), first, "the first one still lives, or this proves nothing");
    let mut window = setup.app.window().await;
    let mut screen = Screen::open(&mut window, &session.id).await;
    assert!(text(&screen).contains("remember this"), "{}", text(&screen));
    let statuses: Vec<_> = screen.records.iter().map(|turn| turn.status).collect();
    assert_eq!(statuses, [TurnRecordStatus::Completed, TurnRecordStatus::Error], "it was cut short");
    send(&mut window, &session.id, "say:after the kill").await;
    screen
        .until(&mut window, "the answer", |screen| text(screen).contains("after the kill") && ends(screen) == 1)
        .await;
    watching.store(false, Ordering::Relaxed);
    let most = watcher.join().unwrap();
    assert_eq!(most.len(), 1, "never two at once: {most:?}");
    assert!(claudes_in(&project).is_disjoint(&first));
}

/// `/clear` begins another conversation in the same process: the record has the agent's new id, ours stays, and after a
/// restart the session is listed once and opens with what came after.
#[tokio::test(flavor = "multi_thread")]
async fn after_clear_the_session_keeps_its_id_and_continues_with_what_came_after() {
    let model = ScriptedModel::start().await.unwrap();
    let mut setup = TestSetup::start_with(|builder| builder.with_claude(&model)).await;
    let mut window = setup.app.window().await;
    let session = setup.create(&mut window, "claude-code").await;
    let mut screen = Screen::open(&mut window, &session.id).await;
    send(&mut window, &session.id, "say:before it").await;
    screen.until(&mut window, "the first answer", |screen| ends(screen) == 1).await;
    send(&mut window, &session.id, "/clear").await;
    screen.until(&mut window, "the end of /clear", |screen| ends(screen) == 2).await;
    let file = setup.app.data_dir().join("sessions.json");
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    within("the agent's new id", async {
        loop {
            let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            let record = &saved["sessions"][0];
            assert_eq!(record["id"], session.id.as_str());
            if record["agentSessionId"].is_string() {
                return;
            }
            looks.tick().await;
        }
    })
    .await;
    let answer = window
        .call(&ClientMessage::SessionOpen {
            session_id: session.id.clone(),
            since: None,
            epoch: None,
            journal_id: None,
        })
        .await;
    assert!(matches!(answer, ServerMessage::SessionHistory { .. }), "{answer:?}");
    let mut screen = Screen::open(&mut window, &session.id).await;
    send(&mut window, &session.id, "say:after it").await;
    screen.until(&mut window, "the answer", |screen| text(screen).contains("after it")).await;
    screen.until(&mut window, "its end", |screen| screen.items.last().is_some_and(|item| item.status.is_final())).await;
    setup.app.interrupt();
    setup.app.ended().await;

    let setup = setup.again_with(|builder| builder.with_claude(&model)).await;
    let mut window = setup.app.window().await;
    let sessions = setup.sessions(&mut window).await;
    assert_eq!(sessions.iter().map(|session| &session.id).collect::<Vec<_>>(), [&session.id]);
    let mut screen = Screen::open(&mut window, &session.id).await;
    assert!(text(&screen).contains("before it") && text(&screen).contains("after it"), "{}", text(&screen));
    // The agent's own history begins after it.
    let forgotten = |screen: &Screen| screen.records.iter().map(|turn| turn.forgotten).collect::<Vec<_>>();
    screen.until(&mut window, "what is forgotten", |screen| forgotten(screen).contains(&true)).await;
    assert_eq!((forgotten(&screen)[0], forgotten(&screen).last()), (true, Some(&false)), "{:?}", screen.records);
}
