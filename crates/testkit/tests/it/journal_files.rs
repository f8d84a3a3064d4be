//! A journal file that cannot be used is reported and never overwritten; one that is very full still works.

use std::path::{Path, PathBuf};
use std::process::Output;

use protocol::{ClientMessage, ItemId, ServerMessage, SessionId};
use testkit::{Screen, TestApp, TestSetup, Window, command_at, programs, within};

/// Where SQLite keeps the version that the user of a file gives it.
const USER_VERSION_AT: usize = 60;

/// A server that has recorded something and has ended, its journal in one file.
async fn with_journal() -> (TestSetup, SessionId, PathBuf) {
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    for _ in 0..3 {
        screen.converse(&mut window, "say:hello \nflood:4000").await;
    }
    setup.app.interrupt();
    setup.app.ended().await;
    let file = setup.app.data_dir().join("journal.db");
    assert!(std::fs::metadata(&file).unwrap().len() > 64 * 1024);
    (setup, session, file)
}

/// Starts a server that must not come up.
async fn refused(home: &Path, wrapper: Option<&str>) -> Output {
    let args = ["--port", "0", "--no-open", "--log", "error"];
    let mut command = command_at(home, &args);
    if let Some(script) = wrapper {
        let mut wrapped = tokio::process::Command::new("unshare");
        wrapped.args(["-m", "sh", "-c", script]).arg(programs::liminal_builder()).args(args);
        wrapped.env("HOME", home).current_dir(home).kill_on_drop(true);
        command = wrapped;
    }
    within("the server to end", command.output()).await.unwrap()
}

fn check_refusal(output: &Output, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(!text.contains("panicked"), "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} in {text:?}");
}

#[tokio::test]
async fn a_journal_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (setup, _, file) = with_journal().await;
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[USER_VERSION_AT..USER_VERSION_AT + 4].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let output = refused(setup.app.home(), None).await;
    check_refusal(&output, &["journal.db", "newer version", "99"]);
    assert!(std::fs::read(&file).unwrap() == bytes, "the file is as it was");
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_is_refused_and_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let (setup, _, file) = with_journal().await;
    let bytes = std::fs::read(&file).unwrap();
    let output = if rustix::process::geteuid().is_root() {
        // A mode does not stop root; a read-only mount does. It ends with the process.
        let name = file.display();
        let script =
            format!("mount --bind '{name}' '{name}' && mount -o remount,ro,bind '{name}' && exec \"$0\" \"$@\"");
        refused(setup.app.home(), Some(&script)).await
    } else {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
        refused(setup.app.home(), None).await
    };
    check_refusal(&output, &["journal.db", "read-only"]);
    assert!(std::fs::read(&file).unwrap() == bytes, "the file is as it was");
}

#[tokio::test]
async fn a_truncated_or_foreign_journal_is_set_aside_byte_for_byte_and_a_new_one_begins() {
    let (mut setup, session, file) = with_journal().await;
    let whole = std::fs::read(&file).unwrap();
    let cut = whole[..whole.len() / 2 + 1000].to_vec();
    let garbage: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(100_000).collect();
    for (what, bytes) in [("truncated", cut), ("garbage", garbage)] {
        std::fs::write(&file, &bytes).unwrap();
        setup = setup.again().await;
        let mut window = setup.app.window().await;
        let hello = window.next_frame().await;
        let ServerMessage::ServerHello { notices, .. } = hello.message else { panic!("{hello:?}") };
        let [notice] = &notices[..] else { panic!("{what}: {notices:?}") };
        assert!(notice.contains("set aside"), "{what}: {notice}");
        let asides = std::fs::read_dir(setup.app.data_dir()).unwrap().flatten().map(|entry| entry.path());
        let asides = asides.filter(|path| path.to_string_lossy().contains(".damaged-"));
        let aside: Vec<PathBuf> = asides.filter(|path| std::fs::read(path).unwrap() == bytes).collect();
        let [aside] = &aside[..] else { panic!("{what}: {aside:?} hold what was there") };
        assert!(notice.contains(&*aside.to_string_lossy()), "{what}: the notice names it");
        // The agent still has the conversation.
        let screen = Screen::open(&mut window, &session).await;
        assert_eq!(screen.answers().len(), 3, "{what}");
        setup.app.interrupt();
        setup.app.ended().await;
    }
}

#[tokio::test]
async fn a_second_server_leaves_the_journal_alone() {
    let setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "say:hello").await;
    let data_dir = setup.app.data_dir();
    let bytes = || ["journal.db", "journal.db-wal"].map(|name| std::fs::read(data_dir.join(name)).unwrap());
    let before = bytes();
    let output = refused(setup.app.home(), None).await;
    check_refusal(&output, &[&setup.app.host(), &setup.app.pid().to_string()]);
    assert!(bytes() == before, "nothing was written");
    screen.converse(&mut window, "say:again").await;
    assert_eq!(Screen::open(&mut window, &session).await.answers(), ["hello", "again"]);
}

fn resident_mib(app: &TestApp, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    resident.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

/// All items, by paging back from the newest ones.
async fn page_back(window: &mut Window, session: &SessionId) -> Vec<ItemId> {
    let request =
        ClientMessage::SessionOpen { session_id: session.clone(), since: None, epoch: None, journal_id: None };
    let ServerMessage::SessionHistory { entries, mut more, .. } = window.call(&request).await else { panic!() };
    let mut ids: Vec<ItemId> = entries.into_iter().map(|entry| entry.item_id).collect();
    while more {
        let before = ids[0].clone();
        let request = ClientMessage::SessionPage { session_id: session.clone(), before, limit: 500 };
        let ServerMessage::SessionPage { entries, more: older, .. } = window.call(&request).await else { panic!() };
        let mut page: Vec<ItemId> = entries.into_iter().map(|entry| entry.item_id).collect();
        assert!(!page.is_empty());
        page.append(&mut ids);
        (ids, more) = (page, older);
    }
    ids
}

#[tokio::test]
async fn a_turn_of_ten_thousand_tool_calls_is_there_to_the_first_after_a_restart() {
    const CALLS: usize = 10_000;
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    let calls: String = (0..CALLS).map(|number| format!("edit:e{number} a\n")).collect();
    screen.converse(&mut window, &calls).await;
    assert_eq!(screen.items.len(), CALLS + 1, "the message and every call");
    println!(
        "{CALLS} tool calls: {} MiB, peak {} MiB",
        resident_mib(&setup.app, "VmRSS:"),
        resident_mib(&setup.app, "VmHWM:")
    );
    setup.app.kill().await;
    let setup = setup.again().await;
    let mut window = setup.app.view_window().await;
    let shown: Vec<ItemId> = screen.items.iter().map(|item| item.id.clone()).collect();
    assert!(page_back(&mut window, &session).await == shown, "every item once, in order");
    println!(
        "after a restart: {} MiB, peak {} MiB",
        resident_mib(&setup.app, "VmRSS:"),
        resident_mib(&setup.app, "VmHWM:")
    );
}

#[tokio::test]
async fn a_line_of_sixty_mebibytes_is_recorded_whole() {
    const LINE_BYTES: usize = 60 << 20;
    let mut setup = TestSetup::start().await;
    let (mut window, session, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "say:first").await;
    screen.converse(&mut window, &format!("huge:{LINE_BYTES}")).await;
    let lengths = |screen: &Screen| screen.answers().iter().map(|answer| answer.len()).collect::<Vec<_>>();
    assert_eq!(lengths(&screen), [5, LINE_BYTES]);
    println!(
        "60 MiB line: {} MiB, peak {} MiB",
        resident_mib(&setup.app, "VmRSS:"),
        resident_mib(&setup.app, "VmHWM:")
    );
    setup.app.kill().await;
    let setup = setup.again().await;
    let mut window = setup.app.window().await;
    let mut screen = Screen::open(&mut window, &session).await;
    assert_eq!(lengths(&screen), [5, LINE_BYTES]);
    screen.converse(&mut window, "say:last").await;
    assert_eq!(lengths(&screen), [5, LINE_BYTES, 4]);
    println!(
        "after a restart: {} MiB, peak {} MiB",
        resident_mib(&setup.app, "VmRSS:"),
        resident_mib(&setup.app, "VmHWM:")
    );
}
