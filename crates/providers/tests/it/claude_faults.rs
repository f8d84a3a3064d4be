//! What the real Claude Code is not seen to do, and a broken one might: the scripted agent on its wire.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use protocol::{AgentSessionId, AgentStatus, CliType, SessionId, UpsertStatus};
use providers::claude::{ClaudeConfig, ClaudeProvider};
use providers::{EVENT_QUEUE_MAX, NewSession, Provider, ProviderError, StoredSession};
use testkit::programs;
use upserts::ItemBody;

use crate::listener::{Listener, soon};

/// A scripted agent of its own for each test.
pub(crate) struct Bench {
    pub(crate) project: tempfile::TempDir,
    pub(crate) config: ClaudeConfig,
}

impl Bench {
    /// `args` decide how it starts.
    pub(crate) fn new(args: &str) -> Self {
        let project = tempfile::tempdir().unwrap();
        let program = programs::scripted_agent();
        let config = ClaudeConfig {
            command: format!("{} claude {args}", program.to_str().unwrap()),
            start_timeout: Duration::from_secs(60),
            env: vec![("CLAUDE_CONFIG_DIR".into(), Some(project.path().join("config").into()))],
            guardian: Some(program.to_owned()),
            ..ClaudeConfig::default()
        };
        Self { project, config }
    }

    pub(crate) fn provider(&self) -> ClaudeProvider {
        ClaudeProvider::new(self.config.clone()).unwrap()
    }

    pub(crate) fn project_dir(&self) -> PathBuf {
        self.project.path().to_owned()
    }

    pub(crate) async fn create(&self, provider: &ClaudeProvider) -> Result<Listener, ProviderError> {
        let new = NewSession { project_dir: self.project_dir() };
        soon("the session", provider.create_session(new)).await.map(Listener::new)
    }
}

/// A session that was given no message yet, as it is stored.
pub(crate) fn stored(agent_id: &AgentSessionId, project_dir: PathBuf) -> StoredSession {
    StoredSession {
        id: SessionId::new(&CliType::parse("claude-code").unwrap(), agent_id),
        agent_id: agent_id.clone(),
        project_dir,
        prompted: false,
        options: Default::default(),
        history: Default::default(),
        items_max: 10,
    }
}

/// The four seconds of the cancel's grace are in it, for the second turn.
#[tokio::test]
async fn a_flooding_turn_is_cancelled_and_the_next_message_is_answered_whether_the_program_stops_or_not() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    for (flood, processes) in [("flood:20000", 1), ("flood:20000\nstall", 2)] {
        let turn = soon("the turn", session.send(flood)).await.unwrap();
        session.until("the flood", |session| session.text().len() > 10_000).await;
        soon("the cancel", session.session.cancel()).await.unwrap();
        session.until_end_of(&turn).await;
        assert!(session.is_cancelled(&turn), "{:?}", session.end_of(&turn));
        let turn = soon("the next turn", session.send("say:and on")).await.unwrap();
        session.until_end_of(&turn).await;
        assert_eq!(session.answers(&turn), ["and on"]);
        let connected = session.statuses.iter().filter(|status| **status == AgentStatus::Connected).count();
        assert_eq!(connected, processes, "{flood}");
    }
}

/// TC-3.1c, TC-2.2f.
#[tokio::test]
async fn a_start_that_fails_leaves_nothing_behind_and_reports_why() {
    let refused = Bench::new("'refuse:error: unknown option --replay-user-messages'");
    let provider = refused.provider();
    let Err(ProviderError::Handshake { detail, .. }) = refused.create(&provider).await else { panic!("it started") };
    assert!(detail.contains("claude update") && detail.contains("unknown option"), "{detail}");
    assert_eq!(provider.watch_status().borrow().status, AgentStatus::Idle);
    assert_eq!(provider.describe().await.status, AgentStatus::Idle);

    let mut silent = Bench::new("silent");
    silent.config.start_timeout = Duration::from_millis(300);
    let Err(ProviderError::Handshake { detail, .. }) = silent.create(&silent.provider()).await else {
        panic!("it started")
    };
    assert!(detail.contains("did not answer"), "{detail}");

    let gone = Bench::new("");
    let new = NewSession { project_dir: gone.project_dir().join("nowhere") };
    let failed = gone.provider().create_session(new).await;
    assert!(matches!(failed, Err(ProviderError::CreateFailed { .. })), "{failed:?}");
}

#[tokio::test]
async fn a_program_that_is_too_old_is_named_with_its_version_the_one_needed_and_how_to_get_it() {
    let old = Bench::new("old:1.0.44");
    let error = old.create(&old.provider()).await.unwrap_err().to_message();
    assert_eq!(error.code, protocol::ErrorCode::AgentHandshakeFailed);
    let detail = error.detail.unwrap();
    assert!(detail.contains("Claude Code 1.0.44 is too old: version 2.1.197 or newer is needed"), "{detail}");
    assert!(detail.contains("`claude update`") && detail.contains("npm install -g"), "{detail}");
    assert!(detail.contains("unknown option '--replay-user-messages'"), "and in its own wording: {detail}");

    // A new one that refuses an option was given it by the user.
    let new = Bench::new("old:9.0.0");
    let detail = new.create(&new.provider()).await.unwrap_err().to_message().detail.unwrap();
    assert!(detail.contains("CLAUDE_CMD") && !detail.contains("too old"), "{detail}");
}

#[tokio::test]
async fn noise_before_the_handshake_and_garbage_in_a_turn_do_no_harm() {
    let bench = Bench::new("noisy");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("say:one\ngarbage\nsay:two").await.unwrap();
    session.until_end_of(&turn).await;
    assert!(session.is_completed(&turn), "{session:#?}");
    assert_eq!(session.answers(&turn), ["one", "two"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_line_beyond_all_bounds_is_left_out_and_the_rest_is_received() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let bytes = agent_process::LINE_BYTES_MAX + 1024;
    let turn = session.send(&format!("say:before\nhuge:{bytes}\nsay:after")).await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["before", "after"]);
    let notice = format!(
        "Something Claude Code wrote was left out: a line is longer than {} bytes.",
        agent_process::LINE_BYTES_MAX
    );
    assert!(session.text().contains(&notice), "{session:#?}");
    soon("the end", provider.shutdown()).await;
}

/// Far more than the session's channel holds. The cost is that of reading each line, and grows with nothing else.
const FLOOD: u64 = 20_000;

#[tokio::test]
async fn a_flood_that_nobody_receives_waits_in_the_agent_and_arrives_whole() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send(&format!("flood:{FLOOD}\nmark:sent")).await.unwrap();
    soon("a full channel", async {
        while session.waiting() < EVENT_QUEUE_MAX {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    // The rest is not read, so the program cannot write it.
    assert!(!bench.project.path().join("sent").exists());
    session.until_end_of(&turn).await;
    assert!(bench.project.path().join("sent").exists());
    let expected: String = (0..FLOOD).map(|at| format!("{at} ")).collect();
    assert!(session.answers(&turn) == [expected]);
    soon("the end", provider.shutdown()).await;
}

/// A measurement, not a test: what a line costs, and that a longer flood costs no more for each. Run alone.
#[tokio::test]
#[ignore = "a measurement: cargo test -p providers -- --ignored --nocapture how_long_a_flood"]
async fn how_long_a_flood_takes() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    for pieces in [10_000, 20_000, 40_000, 80_000] {
        let begun = std::time::Instant::now();
        let turn = session.send(&format!("flood:{pieces}")).await.unwrap();
        session.until_end_of(&turn).await;
        let took = begun.elapsed();
        println!(
            "{pieces:6} lines in {:5} ms, {:5.1} µs each",
            took.as_millis(),
            took.as_secs_f64() * 1e6 / f64::from(pieces)
        );
    }
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn an_agent_that_leaves_in_a_turn_settles_everything_and_is_started_again() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("say:whole\ntool:sleep 9\npart:half\nexit:7").await.unwrap();
    session.until_end_of(&turn).await;
    let (code, message) = session.error_of(&turn).unwrap();
    assert!(code == "PROCESS_CRASH" && message.contains("exit code 7"), "{code} {message}");
    assert_eq!(session.answers(&turn), ["whole", "half"]);
    let items = session.of(&turn);
    assert!(items.iter().all(|item| item.status.is_final()), "nothing shows as running: {items:#?}");
    assert_eq!(items.last().unwrap().status, UpsertStatus::Error);
    let tool = items.iter().find(|item| matches!(item.body, ItemBody::ToolCall { .. })).unwrap();
    assert_eq!(tool.status, UpsertStatus::Error);
    assert!(matches!(&tool.body, ItemBody::ToolCall { tool: Some(tool), .. } if tool.interrupted));

    let connected = |session: &Listener| session.statuses.iter().filter(|s| **s == AgentStatus::Connected).count();
    session.until("another process", |session| connected(session) == 2).await;
    let after = session.send("say:after").await.unwrap();
    session.until_end_of(&after).await;
    assert_eq!(session.answers(&after), ["after"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn a_requested_reconnect_does_not_wait_for_the_next_try() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("exit:1").await.unwrap();
    session.until_end_of(&turn).await;
    soon("the reconnect", session.session.reconnect()).await.unwrap();
    assert!(session.session.is_alive());
    let turn = session.send("say:back").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["back"]);

    let stuck = session.send("part:stuck\nstall").await.unwrap();
    session.until("the part", |session| session.text().contains("stuck")).await;
    soon("the restart", session.session.reconnect()).await.unwrap();
    session.until_end_of(&stuck).await;
    assert_eq!(session.error_of(&stuck).unwrap().0, "PROCESS_CRASH");
    soon("the end", provider.shutdown()).await;
}

/// Whoever presses Retry again and again must not end each time what the last time has started.
#[tokio::test]
async fn a_retry_joins_the_start_that_is_under_way_or_has_just_ended() {
    let gate = tempfile::tempdir().unwrap();
    let open_gate = gate.path().join("open");
    std::fs::write(&open_gate, "").unwrap();
    let bench = Bench::new(&format!("wait:{}", open_gate.display()));
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("exit:1").await.unwrap();
    std::fs::remove_file(&open_gate).unwrap();
    session.until_end_of(&turn).await;
    let handle = session.session.clone();
    let retry = || handle.reconnect();
    let open = async {
        session.until("the start", |session| session.statuses.last() == Some(&AgentStatus::Reconnecting)).await;
        std::fs::write(&open_gate, "").unwrap();
    };
    let (first, second, ()) = soon("the restart", async { tokio::join!(retry(), retry(), open) }).await;
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    soon("one more", retry()).await.unwrap();
    let turn = session.send("say:back").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), ["back"]);
    let connected = session.statuses.iter().filter(|status| **status == AgentStatus::Connected).count();
    assert_eq!(connected, 2, "the first process and one more: {session:#?}");
    soon("the end", provider.shutdown()).await;
}

/// A process with these arguments in its command line, until it is dropped.
async fn stays(program: &Path, args: &[&str]) -> tokio::process::Child {
    let mut command = tokio::process::Command::new(program);
    // As a multiplexer keeps the command line of what it once started, and as anyone may call itself.
    command.arg0("claude").args(args).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
    let process = command.spawn().unwrap();
    let cmdline = format!("/proc/{}/cmdline", process.id().unwrap());
    let expected = format!("claude\0{}\0", args.join("\0"));
    soon("its command line", async {
        while std::fs::read(&cmdline).unwrap() != expected.as_bytes() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    process
}

#[tokio::test]
async fn a_session_is_kept_by_another_claude_code_and_not_by_who_only_has_its_command_line() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let open = async || {
        let id = AgentSessionId::parse(uuid::Uuid::new_v4().to_string()).unwrap();
        let stored = stored(&id, bench.project_dir());
        Listener::new(provider.load_session(stored).await.unwrap().opened)
    };
    let mut free = open().await;
    let _shell = stays("sh".as_ref(), &["-c", "read line", "claude", "--resume", free.agent_id.as_str()]).await;
    let turn = free.send("say:mine").await.unwrap();
    free.until_end_of(&turn).await;
    assert_eq!(free.answers(&turn), ["mine"], "{free:#?}");

    let mut kept = open().await;
    let other = stays(programs::scripted_agent(), &["claude", "--resume", kept.agent_id.as_str()]).await;
    let turn = kept.send("say:never").await.unwrap();
    kept.until_end_of(&turn).await;
    let (_, message) = kept.error_of(&turn).unwrap();
    let expected = format!("Another Claude Code has this session (process {})", other.id().unwrap());
    assert!(message.contains(&expected), "{message}");
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn an_agent_that_closes_its_output_is_lost() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("part:last words\nclose").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.error_of(&turn).unwrap().0, "PROCESS_CRASH");
    assert_eq!(session.answers(&turn), ["last words"]);
    soon("the end", provider.shutdown()).await;
}

#[tokio::test]
async fn silence_is_reported_and_is_not_death() {
    let mut bench = Bench::new("");
    bench.config.prompt_timeout = Duration::from_millis(100);
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    session.send("part:thinking\nstall").await.unwrap();
    session.until("word of the silence", |session| session.facts.silent_ms.is_some_and(|ms| ms >= 100)).await;
    assert!(session.turns.iter().all(|turn| !turn.is_end()));
    let refused = session.send("say:too soon").await;
    assert!(matches!(refused, Err(ProviderError::TurnInProgress)));
    soon("the restart", session.session.reconnect()).await.unwrap();
    session.until("the end of the silence", |session| session.facts.silent_ms == Some(0)).await;
    let turn = session.send("part:again\nstall").await.unwrap();
    session.until("the part", |session| session.answers(&turn) == ["again"]).await;
    soon("the end", provider.shutdown()).await;
    session.until("its end", |session| session.closed).await;
    assert!(session.items.iter().all(|item| item.status.is_final()), "{session:#?}");
    assert!(session.turns.iter().any(|turn| turn.is_end()));
}

#[tokio::test]
async fn a_session_whose_events_nobody_receives_any_more_ends_with_its_process() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let session = bench.create(&provider).await.unwrap();
    let handle = session.session.clone();
    assert!(handle.is_alive());
    drop(session);
    soon("the process to go", async {
        while handle.is_alive() || !matches!(handle.close().await, Err(ProviderError::SessionNotFound(_))) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let gone = handle.send("say:x".into()).await;
    assert!(matches!(gone, Err(ProviderError::SessionNotFound(_))));
}

#[tokio::test]
async fn the_agent_has_our_environment_but_for_its_own_marks() {
    let bench = Bench::new("");
    let provider = bench.provider();
    let mut session = bench.create(&provider).await.unwrap();
    let turn = session.send("env:PATH\nenv:CLAUDECODE").await.unwrap();
    session.until_end_of(&turn).await;
    assert_eq!(session.answers(&turn), [std::env::var("PATH").unwrap(), "(not set)".into()]);
    soon("the end", provider.shutdown()).await;
}
