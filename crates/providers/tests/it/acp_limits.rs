//! ACP agents that ask for much, or write much that nobody asked for: what is held has a bound, and nobody is left
//! waiting.

use agent_process::AgentCommand;
use protocol::TurnEvent;
use providers::acp::{AcpProvider, AcpSettings};
use providers::{Provider, ProviderError};
use testkit::programs;
use upserts::ItemBody;

use crate::acp_bench::{Bench, agent, is_running, until};
use crate::listener::{Listener, soon};

#[tokio::test]
async fn every_file_that_is_asked_for_arrives_however_many_are_asked_for_at_once() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let file = bench.path("large");
    std::fs::write(&file, vec![b'x'; 9_000_000]).unwrap();
    let turn = bench.turn(&mut session, &format!("reads:8 {}", file.display())).await;
    assert_eq!(session.answers(&turn), [(8 * 9_000_000).to_string()]);
}

#[tokio::test]
async fn what_is_kept_of_all_terminals_is_bounded_and_the_oldest_are_cut_first() {
    const EACH: usize = 6_000_000;
    const KEPT_MAX: usize = 32 * 1024 * 1024;
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, &format!("print:8 {EACH}")).await;
    let answers = session.answers(&turn).concat();
    let kept: Vec<(usize, bool)> = answers
        .split(", ")
        .map(|each| {
            (each.trim_end_matches(" cut").parse().unwrap_or_else(|_| panic!("{answers}")), each.ends_with("cut"))
        })
        .collect();
    assert_eq!(kept.len(), 8, "{answers}");
    assert!(kept.iter().map(|(bytes, _)| bytes).sum::<usize>() <= KEPT_MAX, "{answers}");
    assert!(kept[0].1 && (1..EACH).contains(&kept[0].0), "the end of the oldest stays: {answers}");
    assert_eq!(kept[7], (EACH, false), "{answers}");
    let whole = kept.iter().position(|(_, is_cut)| !is_cut).unwrap();
    assert!(kept[whole..].iter().all(|(bytes, is_cut)| *bytes == EACH && !is_cut), "{answers}");
}

#[tokio::test]
async fn one_terminal_too_many_is_refused_with_what_to_do() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "print:65 10").await;
    let answers = session.answers(&turn).concat();
    assert!(answers.contains("64 terminals are open: release one first"), "{answers}");
}

#[tokio::test]
async fn a_flood_between_turns_is_cut_with_a_notice_and_the_next_turn_is_whole() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:before\nlater-flood:64").await;
    session.until("its end", |session| session.facts.agent_title.as_deref() == Some("flood over")).await;
    let kept: usize = session.items.iter().filter_map(|item| item.body.text()).map(|text| text.len()).sum();
    assert!((1024 * 1024..=17 * 1024 * 1024).contains(&kept), "{kept} bytes");
    assert!(session.text().contains("the rest is left out"));
    let turn = bench.turn(&mut session, "say:after").await;
    assert_eq!(session.answers(&turn), ["after"]);
}

#[tokio::test]
async fn a_history_without_end_is_refused_and_other_sessions_go_on() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "replay-flood:12").await;
    soon("the end", bench.provider.shutdown()).await;
    let settings = AcpSettings { history_bytes_max: 4 * 1024 * 1024, ..AcpSettings::default() };
    let provider = AcpProvider::new(agent(bench.state.path(), &[]), settings);
    let bench = Bench { provider, ..bench };
    let refused =
        soon("an answer", bench.provider.load_session(bench.stored_session(&session.agent_id))).await.unwrap_err();
    let ProviderError::LoadFailed { detail } = &refused else { panic!("{refused:?}") };
    assert!(detail.contains("longer than 4194304 bytes"), "{detail}");
    let mut other = bench.create().await;
    let turn = bench.turn(&mut other, "say:alive").await;
    assert_eq!(other.answers(&turn), ["alive"]);
}

#[tokio::test]
async fn long_lines_that_come_faster_than_they_are_read_wait_in_the_pipe() {
    let bench = Bench::new(&[]);
    let (mut session, other) = (bench.create().await, bench.create().await);
    // Nobody listens to `other`: what it cannot pass on is held, up to its bound.
    let script = "huge:20000000\n".repeat(8) + "say:end";
    bench.send(&other, &script).await;
    let turn = bench.turn(&mut session, "say:alive").await;
    assert_eq!(session.answers(&turn), ["alive"]);
    drop(other);
    let turn = bench.turn(&mut session, "say:and on").await;
    assert_eq!(session.answers(&turn), ["and on"]);
}

#[tokio::test]
async fn a_session_that_was_deleted_at_the_agent_is_reported_as_gone() {
    let bench = Bench::new(&[]);
    let (mut deleted, mut kept) = (bench.create().await, bench.create().await);
    bench.turn(&mut deleted, "say:one").await;
    bench.turn(&mut kept, "say:two").await;
    soon("the end", bench.provider.shutdown()).await;
    std::fs::remove_file(bench.state.path().join(format!("session-{}", deleted.agent_id))).unwrap();

    let bench = bench.again(&[]);
    let refused =
        soon("an answer", bench.provider.load_session(bench.stored_session(&deleted.agent_id))).await.unwrap_err();
    let ProviderError::LoadFailed { detail } = &refused else { panic!("{refused:?}") };
    assert!(detail.starts_with("Scripted no longer has this session (Resource not found"), "{detail}");
    assert!(bench.count("session/list") > 0);
    // One that is there is loaded, and nobody asks for the list.
    let asked = bench.count("session/list");
    soon("the session", bench.provider.load_session(bench.stored_session(&kept.agent_id))).await.unwrap();
    assert_eq!(bench.count("session/list"), asked);
    soon("the end", bench.provider.shutdown()).await;

    // An agent that does not list its sessions is not asked, and its own message is all there is.
    let bench = bench.again(&["no-list"]);
    let refused =
        soon("an answer", bench.provider.load_session(bench.stored_session(&deleted.agent_id))).await.unwrap_err();
    assert!(matches!(&refused, ProviderError::LoadFailed { detail } if detail.starts_with("Resource not found")));
    assert_eq!(bench.count("session/list"), asked);
}

#[tokio::test]
async fn probing_an_agent_deletes_its_own_session_and_never_one_of_the_users() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    bench.turn(&mut session, "say:mine").await;
    soon("the end", bench.provider.shutdown()).await;
    let directory = bench.project.path().to_owned();

    let bench = bench.again(&[]);
    soon("the probe", bench.provider.probe(&directory)).await.unwrap();
    assert_eq!(bench.count("session/delete"), 1, "what it has made for this is not kept");
    soon("the end", bench.provider.shutdown()).await;

    // An agent that gives an old session for a new one, and one that does not say which it has.
    for word in ["old-new", "no-list"] {
        let bench = Bench {
            provider: AcpProvider::new(agent(bench.state.path(), &["old-new", word]), AcpSettings::default()),
            state: tempfile::tempdir().unwrap(),
            project: tempfile::tempdir().unwrap(),
        };
        soon("the probe", bench.provider.probe(&directory)).await.unwrap();
        soon("the end", bench.provider.shutdown()).await;
    }
    assert_eq!(bench.count("session/delete"), 1, "{:#?}", bench.log());
    assert_eq!(bench.count(&format!("session/close {}", session.agent_id)), 2);
}

#[tokio::test]
async fn what_a_turn_cost_is_never_less_than_nothing_also_when_the_agent_starts_counting_again() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    for (so_far, cost) in [("5", 5.0), ("7.5", 2.5), ("1.5", 1.5), ("2", 0.5)] {
        let turn = bench.turn(&mut session, &format!("cost:{so_far}")).await;
        let Some(TurnEvent::TurnComplete { usage: Some(usage), .. }) = session.end_of(&turn) else {
            panic!("{session:#?}")
        };
        assert_eq!(usage.cost_usd, Some(cost), "{so_far} so far");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_and_starts_over_is_shown_once() {
    let bench = Bench::new(&[]);
    let mut session = bench.create().await;
    let turn = bench.turn(&mut session, "say:The answer \nsay:is 4\nagain:The ans\nsay:wer is 42.").await;
    assert_eq!(session.answers(&turn), ["The answer is 42."]);
    // It may be cut more than once, and earlier.
    let turn = bench.turn(&mut session, "say:one two three\nagain:one two\nagain:one two three\nsay: four").await;
    assert_eq!(session.answers(&turn), ["one two three four"]);
    // What only begins alike is another message, and whole.
    let turn = bench.turn(&mut session, "say:Let me see.\nagain:Let\nsay: us go.").await;
    assert_eq!(session.answers(&turn), ["Let me see.", "Let us go."]);
    // So is what is sent again after something was done.
    let turn = bench.turn(&mut session, "say:Done.\ncall:c1 ls\ndone:c1 0\nagain:Done.").await;
    assert_eq!(session.answers(&turn), ["Done.", "Done."]);
}

#[tokio::test]
async fn a_program_that_hangs_when_asked_for_its_version_leaves_nothing_behind() {
    let bench = Bench::new(&[]);
    let program = bench.path("hanging-agent");
    let pid_file = bench.path("pid");
    let script = format!("#!/bin/sh\nsleep 1000 &\necho $! > {}\nwait\n", pid_file.display());
    programs::script(&program, &script);
    let mut hanging = agent(bench.state.path(), &[]);
    hanging.command = AgentCommand::new(&program).guardian(programs::scripted_agent());
    let provider = AcpProvider::new(hanging.clone(), AcpSettings::default());
    let info = soon("an answer", provider.describe()).await;
    assert!(info.installed && info.version.is_none());
    let pid = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    until("its child to be gone", || !is_running(pid)).await;

    // Of a program that only runs the agent the version would be another's.
    std::fs::remove_file(&pid_file).unwrap();
    hanging.command = hanging.command.arg("agent.js");
    let provider = AcpProvider::new(hanging, AcpSettings::default());
    assert_eq!(soon("an answer", provider.describe()).await.version, None);
    assert!(!pid_file.exists(), "it was asked");
}

/// The handshake's answer may be anything.
#[tokio::test]
async fn a_handshake_answered_with_nonsense_is_a_failed_handshake() {
    for answer in ["[]", "7", "\"ok\"", "null", "true", "{}", "{\"protocolVersion\":1,\"authMethods\":7}"] {
        let bench = Bench::new(&[&format!("answer:{answer}")]);
        let created = soon("an answer", bench.provider.create_session(bench.new_session())).await;
        match created {
            Err(error) => assert!(matches!(error, ProviderError::Handshake { .. }), "{answer}: {error:?}"),
            Ok(session) => {
                assert!(answer.contains("protocolVersion"), "{answer} was taken for a handshake");
                let session = Listener::new(session);
                assert!(session.items.iter().all(|item| matches!(item.body, ItemBody::Message { .. })));
            }
        }
    }
}
