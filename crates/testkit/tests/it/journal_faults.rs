//! The journal over restarts, kills and a full disk: what was confirmed is there afterwards.

use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{ClientMessage, Continuity, ItemId, ServerFrame, ServerMessage, SessionId, SessionSummary};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use testkit::journal_faults::{Plan, kill_under_load};
use testkit::{Builder, Screen, TestSetup, Window, make_private, programs};

/// How much the small disk holds.
const SMALL_DISK: &str = "size=12m,mode=700";
/// How long a file may be when the disk is full, where no small disk can be made.
const FULL_FILE_BYTES: u64 = 128 * 1024;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// `scripts/journal-faults` does this a thousand times.
#[tokio::test(flavor = "multi_thread")]
async fn kill_nine_under_load_loses_nothing_that_was_confirmed() {
    let plan = Plan {
        seed: number("JOURNAL_FAULTS_SEED", 1),
        kills: number("JOURNAL_FAULTS_KILLS", 25) as usize,
        // A tick and a commit take far less; a busy machine may hold them up.
        missing_max: Duration::from_millis(number("JOURNAL_FAULTS_MISSING_MS", 2000)),
    };
    println!("{plan:?}");
    println!("{:#?}", kill_under_load(plan).await);
}

/// What a page names when it comes back.
#[derive(Clone, Debug)]
struct Named {
    since: u64,
    epoch: u64,
    journal_id: String,
}

async fn open(window: &mut Window, session: &SessionId, named: Option<Named>) -> (ServerMessage, Named) {
    let (since, epoch, journal_id) = match named {
        Some(named) => (Some(named.since), Some(named.epoch), Some(named.journal_id)),
        None => (None, None, None),
    };
    let request = ClientMessage::SessionOpen { session_id: session.clone(), since, epoch, journal_id };
    let answer = window.call(&request).await;
    let ServerMessage::SessionHistory { seq, epoch, journal_id, .. } = &answer else { panic!("{answer:?}") };
    let named = Named { since: *seq, epoch: *epoch, journal_id: journal_id.clone() };
    (answer, named)
}

fn since_and_ids(answer: &ServerMessage) -> (Option<u64>, Vec<ItemId>) {
    let ServerMessage::SessionHistory { since, entries, .. } = answer else { panic!("{answer:?}") };
    (*since, entries.iter().map(|entry| entry.item_id.clone()).collect())
}

fn ids(screen: &Screen) -> Vec<ItemId> {
    screen.items.iter().map(|item| item.id.clone()).collect()
}

async fn restart(mut setup: TestSetup, is_killed: bool) -> TestSetup {
    if is_killed {
        setup.app.kill().await;
    } else {
        setup.app.interrupt();
        setup.app.ended().await;
    }
    setup.again().await
}

fn summary<'a>(sessions: &'a [SessionSummary], id: &SessionId) -> &'a SessionSummary {
    sessions.iter().find(|session| session.id == *id).unwrap()
}

#[tokio::test]
async fn a_page_that_was_open_over_a_restart_gets_what_it_missed_and_nothing_else() {
    for is_killed in [false, true] {
        let setup = TestSetup::start().await;
        let (mut window, session, mut screen) = setup.begin("codex").await;
        screen.converse(&mut window, "say:one\ncall:a make\ndone:a 0").await;
        let (_, named) = open(&mut window, &session, None).await;
        drop(window);
        let seen = ids(&screen);
        let mut other = setup.app.window().await;
        let mut theirs = Screen::open(&mut other, &session).await;
        theirs.converse(&mut other, "say:two\nagain:three").await;
        let missed: Vec<ItemId> = ids(&theirs).into_iter().filter(|id| !seen.contains(id)).collect();
        assert_eq!(missed.len(), 3, "a message and two answers");

        let setup = restart(setup, is_killed).await;
        let mut window = setup.app.window().await;
        let (answer, again) = open(&mut window, &session, Some(named.clone())).await;
        assert_eq!(since_and_ids(&answer), (Some(named.since), missed), "killed: {is_killed}");
        assert!(again.epoch > named.epoch && again.journal_id == named.journal_id, "{again:?} after {named:?}");
        screen.take(&ServerFrame { message: answer, request_id: None });
        assert_eq!(screen.texts(), theirs.texts());
        let (answer, _) = open(&mut window, &session, Some(again.clone())).await;
        assert_eq!(since_and_ids(&answer), (Some(again.since), Vec::new()), "nothing was missed");
        for unknown in [
            Named { since: again.since + 1000, ..again.clone() },
            Named { since: named.since + 1000, ..named.clone() },
            Named { journal_id: "another".into(), ..named.clone() },
            Named { epoch: again.epoch + 1, ..again.clone() },
        ] {
            let (answer, _) = open(&mut window, &session, Some(unknown.clone())).await;
            assert_eq!(since_and_ids(&answer), (None, ids(&theirs)), "{unknown:?}");
        }
        assert!(!setup.agent_log().contains("session/load"), "no agent is asked for it");
    }
}

#[tokio::test]
async fn an_agent_that_cannot_load_leaves_a_copy_that_can_be_read_and_continued() {
    let forgetful = |builder: Builder| {
        builder.env("CODEX_ACP_CMD", format!("'{}' acp no-load no-resume", programs::scripted_agent().display()))
    };
    let mut setup = TestSetup::start_with(forgetful).await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "say:before").await;
    setup.app.kill().await;

    let mut setup = setup.again_with(forgetful).await;
    let mut window = setup.app.window().await;
    let mut screen = Screen::open(&mut window, &session).await;
    assert_eq!((screen.asked(), screen.answers()), (vec!["say:before"], vec!["before"]));
    screen.converse(&mut window, "say:after").await;
    assert_eq!(screen.answers(), ["before", "after"]);
    let listed = setup.sessions(&mut window).await;
    assert_eq!(summary(&listed, &session).state.continuity, Continuity::Copy);
    setup.app.kill().await;

    // And one that is gone.
    let gone = |builder: Builder| builder.env("CODEX_ACP_CMD", "/nowhere/at-all acp");
    let setup = setup.again_with(gone).await;
    let mut window = setup.app.window().await;
    let screen = Screen::open(&mut window, &session).await;
    assert_eq!(screen.asked(), ["say:before", "say:after"]);
    assert_eq!(screen.answers(), ["before", "after"]);
}

#[tokio::test]
async fn a_session_that_is_opened_after_a_restart_shows_its_newest_page_and_starts_no_agent() {
    for cli_type in ["codex", "claude-code"] {
        let setup = TestSetup::start().await;
        let (mut window, session, mut screen) = setup.begin(cli_type).await;
        for turn in 0..120 {
            screen.converse(&mut window, &format!("say:answer {turn}")).await;
        }
        let all = ids(&screen);
        let setup = restart(setup, true).await;
        let log = setup.agent_log();
        let mut window = setup.app.view_window().await;
        let (answer, _) = open(&mut window, &session, None).await;
        let (_, newest) = since_and_ids(&answer);
        assert!(matches!(answer, ServerMessage::SessionHistory { more: true, .. }), "there are older ones");
        assert!(newest.len() < all.len() && all.ends_with(&newest), "{cli_type}: the newest page");
        let request = ClientMessage::SessionPage { session_id: session.clone(), before: newest[0].clone(), limit: 500 };
        let ServerMessage::SessionPage { entries, more, .. } = window.call(&request).await else { panic!() };
        assert!(!more);
        let older: Vec<ItemId> = entries.into_iter().map(|entry| entry.item_id).collect();
        assert_eq!([older, newest].concat(), all, "{cli_type}: every item once, in order");
        assert_eq!(setup.agent_log(), log, "{cli_type}: no agent was asked");
        let children = children(setup.app.pid());
        assert!(children.iter().all(|command| !command.contains("scripted-agent")), "{cli_type}: {children:?}");
    }
}

/// The command lines of what a process has started.
fn children(pid: u32) -> Vec<String> {
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let is_child = status.lines().any(|line| line == format!("PPid:\t{pid}"));
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        is_child.then(|| String::from_utf8_lossy(&command).replace('\0', " "))
    });
    found.collect()
}

/// A disk that can be filled.
enum SmallDisk {
    /// A file system of its own, mounted at the data directory.
    Mounted { at: PathBuf },
    /// The server's files may not grow: the next best thing, where mounting is not allowed.
    FileLimit { pid: u32 },
}

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        make_private(at);
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SMALL_DISK, "tmpfs"]).arg(at).stderr(std::process::Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self::Mounted { at: at.to_owned() })
    }

    fn fill(&self) {
        match self {
            Self::Mounted { at } => {
                let filled = std::fs::write(at.join("filler"), vec![1; 16 << 20]);
                assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
            }
            Self::FileLimit { pid } => limit_files(*pid, Some(FULL_FILE_BYTES)),
        }
    }

    fn free(&self) {
        match self {
            Self::Mounted { at } => std::fs::remove_file(at.join("filler")).unwrap(),
            Self::FileLimit { pid } => limit_files(*pid, None),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Self::Mounted { at } = self {
            // Also when the test has failed and the server still runs.
            drop(std::process::Command::new("umount").arg("-l").arg(at).status());
        }
    }
}

fn limit_files(pid: u32, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

#[tokio::test]
async fn a_full_disk_is_reported_and_what_was_said_meanwhile_is_recorded_when_there_is_room_again() {
    let mut mounted = None;
    let mut setup = TestSetup::start_with(|builder| {
        mounted = SmallDisk::mount(&builder.data_dir());
        builder.through(&["sh", "-c", r#"trap "" XFSZ; exec "$0" "$@""#])
    })
    .await;
    let disk = mounted.unwrap_or(SmallDisk::FileLimit { pid: setup.app.pid() });
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "say:before").await;
    disk.fill();
    // More than the log has room for.
    screen.converse(&mut window, "say:during \nbig-flood:2").await;
    let is_notice = |frame: &ServerFrame, is_empty: bool| match &frame.message {
        ServerMessage::ServerNotices { notices } => notices.is_empty() == is_empty,
        _ => false,
    };
    let mut late = setup.app.window().await;
    let hello = late.next_frame().await;
    let ServerMessage::ServerHello { notices, .. } = hello.message else { panic!("{hello:?}") };
    assert!(notices.iter().any(|notice| notice.contains("kept in memory only")), "{notices:?}");
    let path = format!("/api/session/{session}/send");
    let sent = setup.app.request("POST", &path, Some(&json!({"content": "say:still here"}))).await;
    assert_eq!((sent.status, &sent.json()["recorded"]), (202, &false.into()), "{}", sent.text());
    screen.until(&mut window, "an answer", |screen| screen.answers().contains(&"still here")).await;
    assert!(screen.answers()[1].len() >= 2 << 20, "the session goes on");

    disk.free();
    late.until("that the journal is written again", |frame| is_notice(frame, true)).await;
    let sent = setup.app.request("POST", &path, Some(&json!({"content": "say:after"}))).await;
    assert_eq!(sent.json()["recorded"], true);
    screen.until(&mut window, "an answer", |screen| screen.answers().contains(&"after")).await;
    // Its end is confirmed, and with it all that came before.
    screen.until(&mut window, "its end", |screen| screen.turns.last().is_some_and(protocol::TurnEvent::is_end)).await;
    setup.app.kill().await;
    let setup = setup.again().await;
    let mut window = setup.app.window().await;
    let after = Screen::open(&mut window, &session).await;
    assert_eq!(ids(&after), ids(&screen));
    assert!(after.texts() == screen.texts(), "all of it was recorded");
    assert_eq!(after.asked(), ["say:before", "say:during \nbig-flood:2", "say:still here", "say:after"]);
}
