//! Claude Code's session files, read a page at a time from the end.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use protocol::{AgentSessionId, CliType, SessionId, Timestamp, TurnRecordStatus};
use providers::claude::history::SessionFile;
use providers::{History, HistoryCursor};
use serde_json::{Value, json};
use upserts::{ItemBody, ItemUpdate};

const ID: &str = "00000306-0000-4000-8000-000000000306";

fn file(path: PathBuf) -> SessionFile {
    let (id, agent_id) = ids_of_session();
    SessionFile::at(path, id, agent_id)
}

fn ids_of_session() -> (SessionId, AgentSessionId) {
    let agent_id = AgentSessionId::parse(ID).unwrap();
    (SessionId::new(&CliType::parse("claude-code").unwrap(), &agent_id), agent_id)
}

fn items(history: &History) -> Vec<ItemUpdate> {
    upserts::fold(history.events.clone(), Timestamp::default())
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/claude-code-2.1.325/session-file-sample.jsonl")
}

fn ids(history: &History) -> Vec<String> {
    items(history).iter().map(|item| item.item_id.to_string()).collect()
}

fn texts(history: &History) -> Vec<String> {
    let text = |item: &ItemUpdate| match &item.body {
        ItemBody::ToolCall { name, output, .. } => {
            format!("{name}={}", output.as_ref().map_or("-".into(), ToString::to_string))
        }
        body => body.text().unwrap().to_string(),
    };
    items(history).iter().map(text).collect()
}

/// Reads everything, `items_max` at a time.
fn pages(file: &SessionFile, items_max: usize) -> Vec<History> {
    let mut pages = vec![file.read(None, items_max).unwrap()];
    while let Some(cursor) = pages.last().and_then(|page| page.older.clone()) {
        pages.push(file.read(Some(&cursor), items_max).unwrap());
        assert!(pages.len() < 1000, "paging comes to no end");
    }
    pages.reverse();
    pages
}

/// A session file with these entries.
struct Written {
    directory: tempfile::TempDir,
    entries: Vec<Value>,
}

impl Written {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), entries: Vec::new() }
    }

    fn entry(mut self, kind: &str, uuid: &str, parent: Option<&str>, more: Value) -> Self {
        let mut entry = json!({
            "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "timestamp": "2026-11-15T18:56:15.000Z", "sessionId": ID,
        });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.entries.push(entry);
        self
    }

    fn user(self, uuid: &str, parent: Option<&str>, text: &str) -> Self {
        self.entry("user", uuid, parent, json!({"message": {"role": "user", "content": text}}))
    }

    fn answers(self, uuid: &str, parent: &str, message: &str, text: &str) -> Self {
        let content = json!([{"type": "text", "text": text}]);
        self.entry("assistant", uuid, Some(parent), json!({"message": {"id": message, "content": content}}))
    }

    fn calls(self, uuid: &str, parent: &str, message: &str, call: &str) -> Self {
        let content = json!([{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": call}}]);
        self.entry("assistant", uuid, Some(parent), json!({"message": {"id": message, "content": content}}))
    }

    fn result(self, uuid: &str, parent: &str, call: &str, output: &str) -> Self {
        let content = json!([{"type": "tool_result", "tool_use_id": call, "content": output}]);
        self.entry("user", uuid, Some(parent), json!({"message": {"role": "user", "content": content}}))
    }

    fn file(&self) -> SessionFile {
        let path = self.directory.path().join(format!("{ID}.jsonl"));
        let mut text = std::fs::File::create(&path).unwrap();
        for entry in &self.entries {
            writeln!(text, "{entry}").unwrap();
        }
        file(path)
    }
}

#[test]
fn pages_of_any_size_are_together_the_whole_history() {
    let whole = file(sample()).read(None, usize::MAX).unwrap();
    assert_eq!(whole.older, None);
    assert_eq!(whole.turns.len(), 10);
    for items_max in 1..30 {
        let pages = pages(&file(sample()), items_max);
        let all: Vec<_> = pages.iter().flat_map(ids).collect();
        assert_eq!(all, ids(&whole), "{items_max} at a time");
        let paged: Vec<_> = pages.iter().flat_map(items).collect();
        for (paged, whole) in paged.iter().zip(&items(&whole)) {
            assert_eq!((&paged.turn_id, &paged.body, paged.status), (&whole.turn_id, &whole.body, whole.status));
        }
        let turns: Vec<_> = pages.iter().flat_map(|page| &page.turns).map(|turn| &turn.turn_id).collect();
        assert_eq!(turns, whole.turns.iter().map(|turn| &turn.turn_id).collect::<Vec<_>>(), "{items_max} at a time");
    }
}

#[test]
fn a_page_holds_no_more_than_asked_for_beyond_what_belongs_together() {
    let page = file(sample()).read(None, 3).unwrap();
    assert_eq!(texts(&page).len(), 4, "the two items of the last turn and of the one before it");
    assert!(page.older.is_some());
}

/// A call of a sub-agent that sent so many messages, each of so many bytes.
fn with_sub_agent(messages: usize, bytes: usize) -> Written {
    let written = Written::new().user("u1", None, "go").calls("a1", "u1", "m1", "task");
    let written = written.result("u2", "a1", "task", "done");
    let directory = written.directory.path().join(ID).join("subagents");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("agent-x.meta.json"), json!({"toolUseId": "task"}).to_string()).unwrap();
    let mut lines = String::new();
    let mut parent = Value::Null;
    for number in 0..messages {
        let text = format!("{number} {}", "x".repeat(bytes));
        let call = format!("c{number}");
        let content =
            json!([{"type": "text", "text": text}, {"type": "tool_use", "id": call, "name": "Bash", "input": {}}]);
        let result = json!([{"type": "tool_result", "tool_use_id": call, "content": "ok"}]);
        for (kind, uuid, message) in [
            ("assistant", format!("s{number}"), json!({"id": format!("sm{number}"), "content": content})),
            ("user", format!("r{number}"), json!({"role": "user", "content": result})),
        ] {
            let entry = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": true,
                "timestamp": "2026-11-15T18:56:15.000Z", "sessionId": ID, "message": message});
            lines += &format!("{entry}\n");
            parent = uuid.into();
        }
    }
    std::fs::write(directory.join("agent-x.jsonl"), lines).unwrap();
    written
}

#[test]
fn a_sub_agent_that_did_much_is_shown_whole() {
    let written = with_sub_agent(450, 10);
    let history = written.file().read(None, 50).unwrap();
    let items = items(&history);
    let of_sub_agent = items.iter().filter(|item| item.parent_item_id.is_some());
    assert_eq!(of_sub_agent.count(), 900);
    assert!(!texts(&history).concat().contains("left out"));
}

#[test]
fn a_sub_agent_that_did_too_much_to_be_read_says_that_something_is_missing() {
    let written = with_sub_agent(120, 100_000);
    let history = written.file().read(None, 50).unwrap();
    let texts = texts(&history);
    let notices = texts.iter().filter(|text| text.contains("What this sub-agent did first is left out here"));
    assert_eq!(notices.count(), 1);
    assert!(texts.iter().any(|text| text.starts_with("119 x")), "the newest is there");
    assert!(!texts.iter().any(|text| text.starts_with("0 x")));
}

#[test]
fn a_branch_that_was_left_is_not_part_of_the_conversation() {
    let written = Written::new()
        .user("u1", None, "first")
        .answers("a1", "u1", "m1", "one")
        .user("u2", Some("a1"), "left")
        .answers("a2", "u2", "m2", "left too")
        .user("u3", Some("a1"), "taken")
        .answers("a3", "u3", "m3", "three");
    assert_eq!(texts(&written.file().read(None, 100).unwrap()), ["first", "one", "taken", "three"]);
}

#[test]
fn parallel_tools_are_kept_whichever_result_came_last() {
    let start = || Written::new().user("u1", None, "go").calls("a1", "u1", "m1", "t1").calls("a2", "a1", "m1", "t2");
    let in_order =
        start().result("r1", "a1", "t1", "one").result("r2", "a2", "t2", "two").answers("a3", "r2", "m2", "end");
    let turned =
        start().result("r2", "a2", "t2", "two").result("r1", "a1", "t1", "one").answers("a3", "r1", "m2", "end");
    for written in [in_order, turned] {
        assert_eq!(texts(&written.file().read(None, 100).unwrap()), ["go", "Bash=one", "Bash=two", "end"]);
    }
}

#[test]
fn a_chain_that_is_broken_goes_on_with_what_stands_before_it() {
    let written = Written::new()
        .user("u1", None, "first")
        .answers("a1", "u1", "m1", "one")
        .user("u2", Some("lost"), "second")
        .answers("a2", "u2", "m2", "two");
    assert_eq!(texts(&written.file().read(None, 100).unwrap()), ["first", "one", "second", "two"]);
}

#[test]
fn what_was_before_a_compaction_is_still_shown() {
    let boundary = json!({"subtype": "compact_boundary", "logicalParentUuid": "a1"});
    let summary = json!({"isCompactSummary": true, "message": {"role": "user", "content": "a summary"}});
    let written = Written::new()
        .user("u1", None, "first")
        .answers("a1", "u1", "m1", "one")
        .entry("system", "s1", None, boundary)
        .entry("user", "s2", Some("s1"), summary)
        .user("u2", Some("s2"), "second");
    let shown = texts(&written.file().read(None, 100).unwrap());
    assert_eq!((shown[0].as_str(), shown[1].as_str(), shown[3].as_str()), ("first", "one", "second"));
    assert!(shown[2].contains("compacted") && shown.len() == 4, "{shown:?}");
}

#[test]
fn texts_of_the_program_in_the_users_name_are_hidden() {
    let meta = json!({"isMeta": true, "message": {"role": "user", "content": "Continue from where you left off."}});
    let content = json!([{"type": "text", "text": "No response requested."}]);
    let synthetic = json!({"message": {"id": "x", "model": "<synthetic>", "content": content}});
    let written = Written::new()
        .user("u1", None, "first")
        .user("i1", Some("u1"), "[Request interrupted by user]")
        .entry("user", "u2", Some("i1"), meta)
        .entry("assistant", "a1", Some("u2"), synthetic)
        .user("u3", Some("a1"), "second");
    let history = written.file().read(None, 100).unwrap();
    assert_eq!(texts(&history), ["first", "second"]);
    assert_eq!(history.turns[0].status, TurnRecordStatus::Cancelled);
}

#[test]
fn a_long_turn_is_cut_between_messages_and_keeps_its_id() {
    let mut written = Written::new().user("u1", None, "work");
    let mut parent = "u1".to_owned();
    for step in 0..50 {
        let (call, assistant, result) = (format!("t{step}"), format!("a{step}"), format!("r{step}"));
        written = written.calls(&assistant, &parent, &format!("m{step}"), &call);
        written = written.result(&result, &assistant, &call, "ok");
        parent = result;
    }
    let written = written.answers("end", &parent, "m-end", "done");
    let pages = pages(&written.file(), 10);
    assert!(pages.len() >= 5, "{}", pages.len());
    let all: Vec<_> = pages.iter().flat_map(items).collect();
    assert_eq!(all.len(), 52);
    assert!(all.iter().all(|item| item.turn_id.as_str() == "u1" && item.error.is_none()));
    assert!(pages.iter().all(|page| items(page).len() <= 11));
    assert_eq!(pages.iter().map(|page| page.turns.len()).sum::<usize>(), 1, "the turn comes once");
}

#[test]
fn a_file_that_is_damaged_gives_what_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jsonl");
    let good = r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hello"}}"#;
    std::fs::write(&path, format!("{good}\nnot json\n{{\"type\":\"assistant\"}}\n\u{0}\n{{\"half")).unwrap();
    assert_eq!(texts(&file(path.clone()).read(None, 10).unwrap()), ["hello"]);
    std::fs::write(&path, "").unwrap();
    assert_eq!(texts(&file(path.clone()).read(None, 10).unwrap()), Vec::<String>::new());
    // A cursor from elsewhere finds what it can and does no harm.
    std::fs::write(&path, good).unwrap();
    for cursor in [0, 7, good.len() as u64] {
        file(path.clone()).read(Some(&HistoryCursor(cursor)), 10).unwrap();
    }
}

/// Lines no program wrote, or wrote half: among good ones they cost only themselves.
#[test]
fn garbage_between_the_entries_of_a_conversation_is_passed_over() {
    let written = Written::new()
        .user("u1", None, "first")
        .answers("a1", "u1", "m1", "one")
        .user("u2", Some("a1"), "second")
        .answers("a2", "u2", "m2", "two");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let garbage: [&[u8]; 14] = [
        b"",
        b"\x00\x00\x00",
        b"\xff\xfe{}",
        b"{\"type\":\"user\",\"uuid\":\"x\",\"parentUuid\":\"x\"",
        b"{\"type\":\"user\",\"uuid\":7,\"parentUuid\":{},\"message\":[]}",
        b"{\"type\":null}",
        b"{\"type\":\"user\",\"isMeta\":\"yes\",\"uuid\":\"y\"}",
        b"{\"type\":\"assistant\",\"uuid\":\"z\",\"parentUuid\":\"z\",\"message\":{\"content\":{\"a\":1}}}",
        b"{\"type\":\"user\",\"message\":{\"content\":\"no uuid\"}}",
        b"{\"type\":\"\\ud800\",\"uuid\":\"\\ud800\"}",
        b"[1,2,3]",
        b"\"text\"",
        b"1e999999",
        deep.as_bytes(),
    ];
    let path = written.directory.path().join("with-garbage.jsonl");
    let mut text = Vec::new();
    for entry in &written.entries {
        for line in garbage {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        text.extend_from_slice(entry.to_string().as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    std::fs::write(&path, text).unwrap();
    for items_max in [1, 2, 100] {
        let pages = pages(&file(path.clone()), items_max);
        let shown: Vec<_> = pages.iter().flat_map(texts).collect();
        assert_eq!(shown, ["first", "one", "second", "two"], "{items_max} at a time");
    }
}

/// A crafted or damaged file may name any entry as the one before: the way up comes to an end all the same.
#[test]
fn entries_that_name_themselves_or_each_other_come_to_an_end() {
    let written = Written::new()
        .user("u0", Some("u0"), "itself")
        .user("u1", Some("a2"), "first")
        .answers("a1", "u1", "m1", "one")
        .user("u1", Some("a1"), "the same name again")
        .answers("a2", "u1", "m2", "two");
    let file = written.file();
    let whole = file.read(None, 100).unwrap();
    assert!(texts(&whole).contains(&"two".to_owned()), "{:?}", texts(&whole));
    pages(&file, 1);
}

/// Entries may hold pictures and whole files. A page is bounded by its bytes too, and nothing is lost between pages.
#[test]
fn a_page_of_big_entries_ends_early_and_the_next_goes_on_from_there() {
    const MIB: usize = 1024 * 1024;
    let mut written = Written::new();
    let mut parent = None;
    for turn in 0..40 {
        let (user, answer) = (format!("u{turn}"), format!("a{turn}"));
        let text = format!("{turn} {}", "x".repeat(MIB));
        written = written.user(&user, parent.as_deref(), "go").answers(&answer, &user, &format!("m{turn}"), &text);
        parent = Some(answer);
    }
    let pages = pages(&written.file(), 200);
    let bytes = |page: &History| texts(page).iter().map(String::len).sum::<usize>();
    assert!(pages.iter().all(|page| bytes(page) <= 9 * MIB), "{:?}", pages.iter().map(bytes).collect::<Vec<_>>());
    let all: Vec<_> = pages.iter().flat_map(ids).collect();
    let expected: Vec<_> = (0..40).flat_map(|turn| [format!("u{turn}"), format!("m{turn}.0")]).collect();
    assert_eq!(all, expected);
}

/// The file was replaced by a shorter one, or the cursor is of another file.
#[test]
fn a_cursor_beyond_the_end_of_the_file_reads_from_its_end() {
    let written = Written::new().user("u1", None, "first").answers("a1", "u1", "m1", "one");
    let file = written.file();
    for cursor in [1 << 20, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
        let page = file.read(Some(&HistoryCursor(cursor)), 10).unwrap();
        assert_eq!(texts(&page), ["first", "one"], "from {cursor}");
    }
}

/// A file of 200 MB as the program writes them: long turns of tools with big results, and its own snapshots between
/// them.
fn big_file(path: &Path) {
    const BYTES: u64 = 200 * 1000 * 1000;
    let mut text = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(path).unwrap());
    let output = "a line of what the tool wrote\n".repeat(140);
    let snapshot = json!({"type": "api-request", "sessionId": ID, "params": "x".repeat(60_000)}).to_string();
    let (mut parent, mut written, mut turn) = (None, 0, 0);
    while written < BYTES {
        let mut part = Written::new().user(&format!("u{turn}"), parent.as_deref(), "go on");
        let mut last = format!("u{turn}");
        for step in 0..20 {
            let (call, uuid, result) =
                (format!("t{turn}-{step}"), format!("a{turn}-{step}"), format!("r{turn}-{step}"));
            part = part.calls(&uuid, &last, &format!("m{turn}-{step}"), &call).result(&result, &uuid, &call, &output);
            last = result;
        }
        part = part.answers(&format!("e{turn}"), &last, &format!("m{turn}-end"), "done");
        for entry in part.entries {
            let line = entry.to_string();
            written += line.len() as u64 + 1;
            writeln!(text, "{line}").unwrap();
        }
        writeln!(text, "{snapshot}").unwrap();
        written += snapshot.len() as u64 + 1;
        parent = Some(format!("e{turn}"));
        turn += 1;
    }
    text.flush().unwrap();
}

/// What this thread has read from files so far.
fn bytes_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn the_newest_page_of_200_mb_takes_reading_a_hundredth_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("big.jsonl");
    big_file(&path);
    assert!(std::fs::metadata(&path).unwrap().len() >= 200_000_000);
    let file = file(path);
    let before = bytes_read();
    let newest = file.read(None, 200).unwrap();
    let read = bytes_read() - before;
    assert!((200..250).contains(&items(&newest).len()), "{}", items(&newest).len());
    assert!(read < 2_000_000, "{read} bytes");
    let before = bytes_read();
    let older = file.read(newest.older.as_ref(), 200).unwrap();
    let read = bytes_read() - before;
    assert!(items(&older).len() >= 200 && read < 2_000_000, "{} items, {read} bytes", items(&older).len());
}

/// A measurement, not a test: the newest page of 200 MB, and the most memory it took. Run alone.
#[test]
#[ignore = "a measurement: cargo test -p providers -- --ignored --nocapture how_soon_the_newest_page"]
fn how_soon_the_newest_page_of_200_mb_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("big.jsonl");
    big_file(&path);
    let peak_kib = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let before_kib = peak_kib();
    for _ in 0..5 {
        let begun = std::time::Instant::now();
        let page = file(path.clone()).read(None, 200).unwrap();
        println!("{:6.1} ms, {} items", begun.elapsed().as_secs_f64() * 1e3, items(&page).len());
    }
    println!("peak memory grew by {} KiB, from {before_kib} KiB", peak_kib() - before_kib);
}

#[test]
fn the_end_of_a_big_file_is_read_without_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("big.jsonl");
    let mut text = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    // A hole: reading it would find no line and no memory for it.
    text.get_mut().set_len(200 * 1024 * 1024 * 1024).unwrap();
    use std::io::Seek as _;
    text.seek(std::io::SeekFrom::End(0)).unwrap();
    writeln!(text).unwrap();
    let mut parent = Some("before".to_owned());
    for turn in 0..300 {
        let (user, answer) = (format!("u{turn}"), format!("a{turn}"));
        let entry = json!({"type": "user", "uuid": user, "parentUuid": parent, "message": {"content": "question"}});
        writeln!(text, "{entry}").unwrap();
        let content = json!([{"type": "text", "text": "answer"}]);
        let message = json!({"id": format!("m{turn}"), "content": content});
        let entry = json!({"type": "assistant", "uuid": answer, "parentUuid": user, "message": message});
        writeln!(text, "{entry}").unwrap();
        parent = Some(answer);
    }
    text.flush().unwrap();
    let history = file(path).read(None, 200).unwrap();
    assert_eq!(items(&history).len(), 200);
    assert!(history.older.is_some());
}

#[test]
fn a_session_is_found_by_its_directory_and_not_by_another_of_the_same_name() {
    let config = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let (mine, other) = (home.path().join("a_b"), home.path().join("a-b"));
    std::fs::create_dir(&mine).unwrap();
    std::fs::create_dir(&other).unwrap();
    let mine = mine.canonicalize().unwrap();
    let slug: String =
        mine.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = config.path().join("projects").join(slug);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{ID}.jsonl")), format!("{{}}\n{}\n", json!({"cwd": mine}))).unwrap();
    let find = |project: &Path| {
        let (id, agent_id) = ids_of_session();
        SessionFile::find(config.path(), project, &id, &agent_id).is_some()
    };
    assert!(find(&mine));
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&mine, &link).unwrap();
    assert!(find(&link), "through a link too");
    assert!(!find(&other));
}
