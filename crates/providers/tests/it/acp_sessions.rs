//! ACP sessions as the hub meets them: created, spoken to, cancelled, loaded, killed.

use std::time::Duration;

use protocol::{Continuity, Origin, PermissionDecision, ToolContent, ToolKind, TurnEvent, UpsertStatus};
use providers::acp::AcpSettings;
use providers::{Provider, ProviderError, StoredSession};
use upserts::{ItemBody, ItemUpdate};

use crate::acp_bench::{Bench, is_running, items_of, until};
use crate::listener::{Listener, soon};

fn tool<'a>(listener: &'a Listener, call: &str) -> &'a ItemUpdate {
    let found = listener.items.iter().find(|item| item.item_id.as_str() == call);
    found.unwrap_or_else(|| panic!("no call {call} in {listener:#?}"))
}

fn detail(item: &ItemUpdate) -> &protocol::ToolDetail {
    match &item.body {
        ItemBody::ToolCall { tool: Some(tool), .. } => tool,
        body => panic!("not a tool call: {body:?}"),
    }
}

fn output(item: &ItemUpdate) -> String {
    item.body.text().map(ToString::to_string).unwrap_or_default()
}

/// TC-4.1a, TC-5.1a, TC-5.2a.
#[tokio::test]
async fn the_first_session_starts_the_agent_and_is_there_with_what_it_offers() {
    let bench = Bench::new(&[]);
    assert_eq!(bench.provider.watch_status().borrow().status, protocol::AgentStatus::Idle);
    let mut session = bench.create().await;
    assert!(session.session.is_alive());
    session.until("its facts", |session| session.facts.commands.is_some() && session.facts.options.is_some()).await;
    session.until("its state", |session| session.statuses.contains(&protocol::AgentStatus::Connected)).await;
    assert_eq!(session.continuity, [Continuity::Live]);
    assert_eq!(session.facts.options.as_ref().unwrap()[0].value, "ask");
    assert_eq!(bench.provider.watch_status().borrow().status, protocol::AgentStatus::Connected);
    assert_eq!(bench.provider.describe().await.version.as_deref(), Some("1.2.3"));
}

/// TC-5.1b.
#[tokio::test]
async fn sessions_share_one_process_and_their_texts_never_mix() {
    let bench = Bench::new(&[]);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(bench.create().await);
    }
    let mut turns = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        turns.push(bench.send(session, &format!("say:one{number} \nhold:go\nsay:two{number}")).await);
    }
    bench.release("go");
    for (number, (session, turn)) in sessions.iter_mut().zip(&turns).enumerate() {
        session.until_end_of(turn).await;
        assert_eq!(session.answers(turn), [format!("one{number} two{number}")]);
    }
    assert_eq!(bench.count("start"), 1);
}

/// TC-4.1c, TC-4.2a: the user's own message is the turn's first item, and everything carries the turn's id.
#[tokio::test]
async fn a_turn_begins_with_the_users_message_and_streams_the_answer() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "think:hm\nsay:Hello\nhold:go\nsay: world").await;
    session.until("the first text", |session| session.text().contains("Hello")).await;
    assert!(session.items.iter().any(|item| item.status != UpsertStatus::Complete), "it still grows");
    bench.release("go");
    session.until_end_of(&turn).await;
    let items = session.of(&turn);
    assert!(matches!(&items[0].body, ItemBody::Message { origin: Origin::User, .. }));
    assert!(matches!(&items[1].body, ItemBody::Thinking { text, .. } if *text == "hm"));
    assert_eq!(session.answers(&turn), ["Hello world"]);
    assert!(items.iter().all(|item| item.status == UpsertStatus::Complete));
    let end = session.end_of(&turn).unwrap();
    assert!(matches!(end, TurnEvent::TurnComplete { usage: Some(usage), .. } if usage.output_tokens == 5));
    assert!(matches!(&session.turns[0], TurnEvent::TurnStarted { turn_id, .. } if *turn_id == turn));
}

/// TC-4.2b, TC-4.2c.
#[tokio::test]
async fn a_command_is_shown_while_it_runs_and_with_how_it_ended() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench
        .send(&session, "call:c1 make test\noutput:c1 line 1\nhold:go\noutput:c1 line 2\ndone:c1 2\nedit:e1 /a.rs")
        .await;
    session.until("live output", |session| session.text().contains("line 1")).await;
    let call = tool(&session, "c1");
    assert_eq!(detail(call).command.as_deref(), Some("make test"));
    assert!(matches!(call.status, UpsertStatus::Create | UpsertStatus::Update));
    bench.release("go");
    session.until_end_of(&turn).await;
    let call = tool(&session, "c1");
    assert_eq!((output(call).as_str(), detail(call).exit_code), ("line 1\nline 2\n", Some(2)));
    assert!(matches!(call.body, ItemBody::ToolCall { is_error: Some(true), .. }));
    assert!(detail(call).started_at <= detail(call).ended_at && detail(call).ended_at.is_some());
    let edit = detail(tool(&session, "e1"));
    assert_eq!(edit.kind, ToolKind::Edit);
    assert!(matches!(&edit.content[..], [ToolContent::Diff { path, .. }] if path == "/a.rs"));
}

#[tokio::test]
async fn permission_is_given_once_and_is_part_of_the_call() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "permission-always:c1\ncall:c1 rm x\ndone:c1 0").await;
    assert_eq!(session.answers(&turn), ["permission: once"]);
    let permission = detail(tool(&session, "c1")).permission.clone().unwrap();
    assert_eq!(permission.decision, PermissionDecision::AllowedAutomatically);
    assert_eq!(permission.option.as_deref(), Some("Allow once"));
}

#[tokio::test]
async fn a_cancelled_turn_keeps_what_was_received_and_gives_no_more_permission() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "say:partial\nhold:never").await;
    session.until("the text", |session| session.text().contains("partial")).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn));
    assert_eq!(session.answers(&turn), ["partial"]);

    let turn = bench.send(&session, "deaf:late\npermission:c1").await;
    bench.until_logged("hold late").await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    bench.until_logged("session/cancel").await;
    until("the second cancel", || bench.count("session/cancel") == 2).await;
    bench.release("late");
    session.until_end_of(&turn).await;
    assert_eq!(bench.count("permission cancelled"), 1);
    // With nothing running it does nothing.
    soon("an idle cancel", session.session.cancel()).await.unwrap();
    let turn = bench.turn(&mut session, "say:alive").await;
    assert!(session.is_completed(&turn));
}

#[tokio::test]
async fn a_command_left_running_by_a_cancel_is_ended_with_its_session_which_comes_back_by_itself() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "call:c1 sleep 100\nhold:never").await;
    session
        .until("the call", |session| !session.items.is_empty() && session.text().is_empty() && session.items.len() == 2)
        .await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(detail(tool(&session, "c1")).interrupted);
    bench.until_logged(&format!("session/close {}", session.agent_id)).await;
    let turn = bench.turn(&mut session, "say:back").await;
    assert_eq!(session.answers(&turn), ["back"]);
    assert_eq!(bench.count("session/resume"), 1);
    assert_eq!(bench.count("start"), 1);
}

/// It waits for the agent to close the session, or to resume it.
#[tokio::test]
async fn a_cancel_takes_back_a_message_that_waits_for_the_agent() {
    for (word, gate) in [("slow-close", "close"), ("slow-resume", "resume")] {
        let bench = Bench::new(&[word]);
        let mut session = bench.create().await;
        let turn = bench.send(&session, "call:c1 sleep 100\nhold:never").await;
        session.until("the call", |session| session.items.len() == 2).await;
        soon("the cancel", session.session.cancel()).await.unwrap();
        session.until_end_of(&turn).await;
        let id = session.agent_id.clone();
        let gate = format!("{gate}-{id}");
        let waiting = session.send("say:never");
        let cancel = async {
            bench.until_logged(&format!("hold {gate}")).await;
            session.session.cancel().await.unwrap();
        };
        let (waiting, ()) = soon("the cancel", async { tokio::join!(waiting, cancel) }).await;
        let waiting = waiting.unwrap();
        session.until_end_of(&waiting).await;
        assert!(session.is_cancelled(&waiting), "{word}: {session:#?}");
        assert_eq!(session.of(&waiting).len(), 1, "the user's message is shown, and nothing came of it");
        bench.release(&gate);
        let next = bench.turn(&mut session, "say:ready").await;
        assert_eq!(session.answers(&next), ["ready"], "{word}");
        assert_eq!(bench.count("session/prompt"), 2, "{word}");
        soon("the end", bench.provider.shutdown()).await;
    }
}

/// Archived while a slow agent is asked for the history, or given up on, and opened again: it is replayed twice, and is
/// there once.
#[tokio::test]
async fn a_session_that_was_abandoned_while_it_loads_and_is_opened_again_has_one_history() {
    for is_killed in [true, false] {
        let session_timeout = Duration::from_secs(if is_killed { 60 } else { 3 });
        let bench = Bench::with(&["slow-load"], AcpSettings { session_timeout, ..AcpSettings::default() });
        let mut session = bench.create().await;
        let id = session.agent_id.clone();
        bench.turn(&mut session, "say:once").await;
        soon("the end", session.session.close()).await.unwrap();

        let first = bench.provider.load_session(bench.stored_session(&id));
        if is_killed {
            // Who does not want it any more drops the call.
            let asked = format!("hold load-{id}");
            tokio::select! {
                first = first => panic!("it was loaded: {first:?}"),
                () = bench.until_logged(&asked) => {}
            }
        } else {
            let first = soon("the first", first).await;
            assert!(first.is_err(), "{first:?}");
        }

        let second = bench.provider.load_session(bench.stored_session(&id));
        let open_gate = async {
            // Time to ask the agent a second time too early.
            tokio::time::sleep(Duration::from_millis(100)).await;
            bench.release(&format!("load-{id}"));
        };
        let second = soon("the second", async { tokio::join!(second, open_gate).0 }).await.unwrap();
        let texts: Vec<String> = items_of(&second.history).iter().map(|item| format!("{item:?}")).collect();
        assert_eq!(texts.iter().filter(|text| text.contains("once")).count(), 2, "message and answer: {texts:#?}");
        soon("the end", bench.provider.shutdown()).await;
    }
}

#[tokio::test]
async fn an_idle_session_is_closed_at_the_agent_and_comes_back_with_the_next_message() {
    let settings = AcpSettings { idle: Some(Duration::from_millis(100)), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings.clone());
    let mut session = bench.create().await;
    for round in 1..=2 {
        let turn = bench.turn(&mut session, &format!("say:{round}")).await;
        assert_eq!(session.answers(&turn), [round.to_string()]);
        session.until("its rest", |session| session.continuity.last() == Some(&Continuity::Dormant)).await;
        until("the close", || bench.count("session/close") == round).await;
        until("its end there", || !session.session.is_alive()).await;
    }
    assert_eq!((bench.count("start"), bench.count("session/resume")), (1, 1), "{:#?}", bench.log());

    // One that could not come back stays.
    let bench = Bench::with(&["no-close"], settings);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:one").await;
    let turn = bench.send(&session, "hold:go").await;
    bench.release("go");
    session.until_end_of(&turn).await;
    assert!(session.session.is_alive() && !session.continuity.contains(&Continuity::Dormant));
}

#[tokio::test]
async fn an_agent_that_does_not_end_a_cancelled_turn_is_not_waited_for() {
    let settings = AcpSettings { cancel_grace: Duration::from_millis(50), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "say:words\ndeaf:never").await;
    session.until("the text", |session| session.text().contains("words")).await;
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_cancelled(&turn));
    let turn = bench.turn(&mut session, "say:back").await;
    assert_eq!(session.answers(&turn), ["back"]);
}

#[tokio::test]
async fn a_message_to_an_agent_that_hangs_is_answered_with_what_to_do_and_a_restart_repairs_it() {
    let settings = AcpSettings { cancel_grace: Duration::from_secs(3), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before").await;
    let turn = bench.send(&session, "say:words\nhold:never").await;
    session.until("the text", |session| session.text().contains("words")).await;
    let pid = rustix::process::Pid::from_raw(bench.pid().await.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    soon("the cancel", session.session.cancel()).await.unwrap();
    session.until_end_of(&turn).await;
    let refused = soon("an answer", session.send("say:x")).await.unwrap_err();
    assert_eq!(refused.to_message().message, "Scripted does not answer. Restart it to go on.");
    soon("the restart", bench.provider.reconnect()).await.unwrap();
    let turn = bench.turn(&mut session, "say:back").await;
    assert_eq!(session.answers(&turn), ["back"]);
}

#[tokio::test]
async fn a_second_message_waits_for_nothing_and_is_refused() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "hold:go").await;
    let refused = soon("an answer", session.send("say:x")).await;
    assert!(matches!(refused, Err(ProviderError::TurnInProgress)));
    bench.release("go");
    session.until_end_of(&turn).await;
    assert_eq!(bench.count("session/prompt"), 1);
}

/// TC-4.1b.
#[tokio::test]
async fn a_loaded_session_has_its_history_and_goes_on() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:first").await;
    bench.turn(&mut session, "say:second").await;
    soon("the end", bench.provider.shutdown()).await;
    session.until("the end of the channel", |session| session.closed).await;
    let id = session.agent_id.clone();

    let bench = bench.again(&[]);
    let loaded = soon("the session", bench.provider.load_session(bench.stored_session(&id))).await.unwrap();
    let texts: Vec<String> = items_of(&loaded.history).iter().map(output).collect();
    assert_eq!(texts, ["say:first", "first", "say:second", "second"]);
    assert!(items_of(&loaded.history).iter().all(|item| item.status == UpsertStatus::Complete));
    assert_eq!(loaded.history.turns.len(), 2);
    assert_eq!(loaded.history.continuity, Continuity::Resumed);
    assert!(loaded.history.older.is_none());
    let again = soon("an answer", bench.provider.load_session(bench.stored_session(&id))).await;
    assert!(
        matches!(&again, Err(ProviderError::LoadFailed { detail }) if detail.contains("open already")),
        "{again:?}"
    );
    let mut session = Listener::new(loaded.opened);
    let turn = bench.turn(&mut session, "say:third").await;
    assert_eq!(session.answers(&turn), ["third"]);
    assert_eq!(session.items.len(), 2, "the history comes with the load, not as news");
}

#[tokio::test]
async fn a_session_that_never_got_a_message_is_created_again() {
    let bench = Bench::new(&[]);
    let session = bench.create().await;
    let old = session.agent_id.clone();
    soon("the end", bench.provider.shutdown()).await;
    let bench = bench.again(&[]);
    let stored = StoredSession { prompted: false, ..bench.stored_session(&old) };
    let loaded = soon("the session", bench.provider.load_session(stored)).await.unwrap();
    assert!(items_of(&loaded.history).is_empty());
    let mut session = Listener::new(loaded.opened);
    assert_ne!(session.agent_id, old);
    let turn = bench.turn(&mut session, "say:hello").await;
    assert_eq!(session.answers(&turn), ["hello"]);
}

#[tokio::test]
async fn a_session_the_agent_does_not_know_is_refused_and_may_be_tried_again() {
    let bench = Bench::new(&[]);
    let unknown = protocol::AgentSessionId::parse("nobody").unwrap();
    for _ in 0..2 {
        let refused = soon("an answer", bench.provider.load_session(bench.stored_session(&unknown))).await.unwrap_err();
        assert!(
            matches!(&refused, ProviderError::LoadFailed { detail } if detail.contains("Resource not found")),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_killed_session_is_closed_at_the_agent_and_others_go_on() {
    let bench = Bench::new(&[]);
    let (mut killed, mut other) = (bench.create().await, bench.create().await);
    let turn = bench.send(&killed, "say:words\nhold:never").await;
    killed.until("the text", |session| session.text().contains("words")).await;
    soon("the end", killed.session.close()).await.unwrap();
    killed.until("the end of the channel", |session| session.closed).await;
    assert!(killed.is_cancelled(&turn));
    assert!(!killed.session.is_alive());
    bench.until_logged(&format!("session/close {}", killed.agent_id)).await;
    let gone = soon("an answer", killed.send("x")).await;
    assert!(matches!(gone, Err(ProviderError::SessionNotFound(_))));
    let turn = bench.turn(&mut other, "say:alive").await;
    assert_eq!(other.answers(&turn), ["alive"]);
}

#[tokio::test]
async fn a_session_nobody_receives_is_closed_and_deleted_where_nothing_was_sent() {
    for (args, method) in [(&[][..], "session/delete"), (&["no-delete"][..], "session/close")] {
        let bench = Bench::new(args);
        let session = bench.create().await;
        let (id, handle) = (session.agent_id.clone(), std::sync::Arc::clone(&session.session));
        drop(session);
        bench.until_logged(&format!("{method} {id}")).await;
        until("the session to be gone", || !handle.is_alive()).await;
    }
}

/// TC-5.3a.
#[tokio::test]
async fn a_shutdown_settles_what_runs_and_leaves_no_process() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "say:words\ncall:c1 sleep\nhold:never").await;
    session.until("the call", |session| session.items.len() == 3).await;
    let pid = bench.pid().await;
    soon("the end", bench.provider.shutdown()).await;
    session.until("the end of the channel", |session| session.closed).await;
    assert!(session.is_cancelled(&turn));
    assert!(detail(tool(&session, "c1")).interrupted);
    assert!(!is_running(pid));
    let refused = soon("an answer", bench.provider.create_session(bench.new_session())).await;
    assert!(matches!(refused, Err(ProviderError::Unavailable { .. })));
}

#[tokio::test]
async fn files_are_read_and_written_in_the_project_and_nowhere_else() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    std::fs::write(bench.path("a.txt"), "one\ntwo").unwrap();
    let inside = format!("read:{}\nwrite:{}=new", bench.path("a.txt").display(), bench.path("b.txt").display());
    let turn = bench.turn(&mut session, &inside).await;
    assert_eq!(session.answers(&turn), ["one\ntwodone"]);
    assert_eq!(std::fs::read_to_string(bench.path("b.txt")).unwrap(), "new");

    let secret = bench.state.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    let outside = format!("read:{0}\nwrite:{0}=stolen", secret.display());
    let turn = bench.turn(&mut session, &outside).await;
    assert!(session.answers(&turn)[0].starts_with("refused: the path is outside"), "{:?}", session.answers(&turn));
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "x");
}

#[tokio::test]
async fn a_command_run_through_us_shows_its_output_in_the_call_that_holds_its_terminal() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "run:c1 seq 1 40").await;
    let answer = session.answers(&turn).concat();
    assert!(answer.starts_with(r#"{"exitCode":0}"#) && answer.contains(r#""truncated":true"#), "{answer}");
    let lines: String = (1..=40).map(|number| format!("{number}\n")).collect();
    assert_eq!(output(tool(&session, "c1")), lines);
    let turn = bench.turn(&mut session, "run:c2 no-such-program").await;
    assert!(session.answers(&turn)[0].starts_with(r#"{"exitCode":127}"#));
}

#[tokio::test]
async fn a_command_run_through_us_does_not_outlive_its_turn() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let pid_file = bench.path("pid");
    std::fs::write(bench.path("slow.sh"), format!("echo $$ > {}; exec sleep 1000", pid_file.display())).unwrap();
    let turn = bench.send(&session, &format!("run:c1 sh {}", bench.path("slow.sh").display())).await;
    until("the command", || std::fs::read_to_string(&pid_file).is_ok_and(|text| text.ends_with('\n'))).await;
    let pid: u32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    assert!(is_running(pid));
    soon("the end", session.session.close()).await.unwrap();
    session.until("the end of the channel", |session| session.closed).await;
    assert!(session.is_cancelled(&turn));
    until("the command to be gone", || !is_running(pid)).await;
}

#[tokio::test]
async fn what_a_command_prints_is_shown_at_once_and_whole_also_without_an_end_of_line() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let script = |name: &str, lines: &str| std::fs::write(bench.path(name), lines).unwrap();
    script(
        "ask.sh",
        &format!("printf 'Continue? '; while [ ! -e {} ]; do sleep 0.01; done", bench.path("yes").display()),
    );
    let turn = bench.send(&session, &format!("run:c1 sh {}", bench.path("ask.sh").display())).await;
    session.until("the question", |session| session.items.iter().any(|item| output(item).contains("Continue? "))).await;
    std::fs::write(bench.path("yes"), "").unwrap();
    session.until_end_of(&turn).await;

    // Far longer than anything that is kept line by line, and without an end.
    script("long.sh", "head -c 3000000 /dev/zero | tr '\\0' x; printf end");
    bench.turn(&mut session, &format!("run:c2 sh {}", bench.path("long.sh").display())).await;
    let long = output(tool(&session, "c2"));
    assert!(long.len() == 3_000_003 && long.ends_with("xend"), "{} bytes", long.len());

    // Also if the agent comes to show it only when all is printed; then there is a limit, and what is left out is reported.
    bench.turn(&mut session, &format!("run-unseen:c4 sh {}", bench.path("long.sh").display())).await;
    let late = output(tool(&session, "c4"));
    assert!(late.len() == 3_000_003 && late.ends_with("xend"), "{} bytes", late.len());
    script("longer.sh", "head -c 20000000 /dev/zero | tr '\\0' x");
    bench.turn(&mut session, &format!("run-unseen:c5 sh {}", bench.path("longer.sh").display())).await;
    let cut = output(tool(&session, "c5"));
    let (shown, note) = cut.rsplit_once("\n[").unwrap();
    assert_eq!(note, format!("{} bytes left out]\n", 20_000_000 - shown.len()));
    assert!(shown.len() > 3_000_003 && shown.bytes().all(|byte| byte == b'x'));

    // A letter in two pieces is one letter.
    script("slow.sh", "printf '\\303'; sleep 0.2; printf '\\251 \\377.'");
    bench.turn(&mut session, &format!("run:c3 sh {}", bench.path("slow.sh").display())).await;
    assert_eq!(output(tool(&session, "c3")), "é \u{fffd}.");
}

#[tokio::test]
async fn a_command_that_begins_as_its_turn_ends_does_not_outlive_it() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let pid_file = bench.path("pid");
    std::fs::write(bench.path("slow.sh"), format!("echo $$ > {}; exec sleep 1000", pid_file.display())).unwrap();
    bench.turn(&mut session, &format!("launch:sh {}\nsay:done", bench.path("slow.sh").display())).await;
    bench.until_logged("answer ").await;
    until("the command to be gone", || {
        let pid = std::fs::read_to_string(&pid_file).ok().and_then(|text| text.trim().parse().ok());
        pid.is_none_or(|pid| !is_running(pid)) && crate::claude_real::programs_in(bench.project.path()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn what_nobody_knows_is_answered_or_passed_over() {
    let bench = Bench::new(&["noisy"]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "strange\nnotice:Take care\ntitle:A title\nplan:one,two").await;
    assert_eq!(session.answers(&turn), ["dance: -32601, read: -32602"]);
    assert!(session.text().contains("Warning: Take care"));
    assert_eq!(session.facts.agent_title.as_deref(), Some("A title"));
    assert_eq!(session.facts.plan.as_ref().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_failed_prompt_is_the_turns_error_and_a_stop_has_its_reason() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "say:words\nerror:rate limit").await;
    assert_eq!(session.error_of(&turn), Some(("AGENT_PROTOCOL_ERROR".into(), "rate limit".into())));
    assert_eq!(session.answers(&turn), ["words"]);
    let turn = bench.turn(&mut session, "say:words\nstop:max_tokens").await;
    assert!(session.is_completed(&turn) && session.text().contains("maximum length"));
    let turn = bench.turn(&mut session, "stop:refusal").await;
    assert!(session.error_of(&turn).is_some());
    let turn = bench.turn(&mut session, "stop:tired").await;
    assert!(session.is_completed(&turn));
}

#[tokio::test]
async fn silence_is_reported_and_ends_with_the_next_output_but_a_running_tool_may_be_silent() {
    let settings = AcpSettings { silence_after: Duration::from_millis(30), ..AcpSettings::default() };
    let bench = Bench::with(&[], settings);
    let mut session = bench.create().await;
    let turn = bench.send(&session, "call:c1 make\nhold:made\ndone:c1 0\nhold:go\nsay:done").await;
    session.until("the call", |session| session.items.len() == 2).await;
    bench.until_logged("hold made").await;
    assert_eq!(session.facts.silent_ms.unwrap_or(0), 0);
    bench.release("made");
    session.until("silence", |session| session.facts.silent_ms.is_some_and(|ms| ms >= 30)).await;
    bench.release("go");
    session.until_end_of(&turn).await;
    session.until("the end of the silence", |session| session.facts.silent_ms == Some(0)).await;
    assert_eq!(session.answers(&turn), ["done"]);
}

#[tokio::test]
async fn a_login_is_done_with_a_key_that_is_there_and_asked_for_where_it_is_not() {
    let bench = Bench::new(&["login"]);
    let refused = soon("an answer", bench.provider.create_session(bench.new_session())).await.unwrap_err();
    assert!(
        matches!(&refused, ProviderError::LoginRequired { detail, .. } if detail.contains("Set SCRIPTED_KEY")),
        "{refused:?}"
    );

    let mut agent = crate::acp_bench::agent(bench.state.path(), &["login"]);
    agent.command = agent.command.env("SCRIPTED_KEY", "k");
    let provider = providers::acp::AcpProvider::new(agent, AcpSettings::default());
    soon("the session", provider.create_session(bench.new_session())).await.unwrap();
    assert_eq!(bench.count("authenticate"), 1);
}
