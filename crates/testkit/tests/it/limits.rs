//! What the system limits: open files, which connections must not use up, and the room on a disk.

use std::time::Duration;

use protocol::{CliType, ClientMessage, ServerMessage};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use testkit::{TestApp, TestSetup, within};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// A command that runs another under these limits.
fn under(limits: &str) -> [String; 4] {
    ["sh".into(), "-c".into(), format!("{limits} && exec \"$@\""), "sh".into()]
}

/// The soft limit of a process on open files.
fn soft_limit(pid: u32) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

async fn half_open(app: &TestApp, count: usize) -> Vec<TcpStream> {
    let mut idle = Vec::new();
    for number in 0..count {
        let mut stream = TcpStream::connect(app.address()).await.unwrap();
        // Some send nothing, some begin a request.
        if number % 2 == 0 {
            stream.write_all(b"POST /api/session/create HTTP/1.1\r\nHost: ").await.ok();
        }
        idle.push(stream);
    }
    idle
}

/// Whether everything a user does first still works, on fresh connections.
async fn create_rename_and_add(setup: &TestSetup, round: usize) {
    let body = json!({"projectId": setup.project, "cliType": "codex"});
    let created = setup.app.request("POST", "/api/session/create", Some(&body)).await;
    assert_eq!(created.status, 201, "{}", String::from_utf8_lossy(&created.body));

    let mut window = setup.app.window().await;
    let session = setup.create(&mut window, "claude-code").await.id;
    let title = format!("renamed {round}");
    let renamed = ClientMessage::SessionRename { session_id: session.clone(), title: title.clone() };
    window.call(&renamed).await;
    let listed = setup.sessions(&mut window).await;
    assert!(listed.iter().any(|listed| listed.id == session && listed.title == title), "{listed:?}");

    let other = setup.app.home().join(format!("other-{round}"));
    std::fs::create_dir(&other).unwrap();
    let added = window.call(&ClientMessage::ProjectAdd { path: other.to_string_lossy().into_owned() }).await;
    assert!(matches!(added, ServerMessage::ProjectAdded { .. }), "{added:?}");

    window.call(&ClientMessage::SessionArchive { session_id: session.clone() }).await;
    assert!(setup.sessions(&mut window).await.iter().all(|listed| listed.id != session));
}

#[tokio::test]
async fn half_open_connections_leave_files_for_sessions_however_low_the_limit_is() {
    for limit in [128, 256, 700] {
        let wrapper = under(&format!("ulimit -n {limit}"));
        let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
        let setup = TestSetup::start_with(|builder| builder.through(&wrapper)).await;
        assert_eq!(soft_limit(setup.app.pid()), limit);

        let idle = half_open(&setup.app, 300).await;
        create_rename_and_add(&setup, 1).await;
        // Again, with those that came first gone and others in their place.
        let more = half_open(&setup.app, 300).await;
        create_rename_and_add(&setup, 2).await;
        let open = open_files(setup.app.pid());
        assert!(open < limit as usize * 3 / 4, "{open} of {limit} files are open");
        drop((idle, more));
    }
}

#[tokio::test]
async fn so_many_agents_that_no_file_is_left_are_refused_and_the_rest_goes_on() {
    let wrapper = under("ulimit -n 128");
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let setup = TestSetup::start_with(|builder| builder.through(&wrapper)).await;
    let mut window = setup.app.window().await;
    let _idle = half_open(&setup.app, 100).await;
    // Each session of Claude Code is a process.
    let create = ClientMessage::SessionCreate {
        project_id: setup.project.clone(),
        cli_type: CliType::parse("claude-code").unwrap(),
    };
    let mut sessions = Vec::new();
    let refused = loop {
        match window.try_call(&create).await {
            Ok(ServerMessage::SessionCreated { session, .. }) => sessions.push(session.id),
            Err(error) => break error,
            other => panic!("{other:?}"),
        }
        assert!(sessions.len() < 50, "nobody reported that there are too many");
    };
    let message = format!("{} {}", refused.message, refused.detail.unwrap_or_default());
    assert!(message.contains("limit on open files"), "{message}");
    assert!(sessions.len() >= 8, "{}", sessions.len());
    for session in &sessions {
        let title = format!("still {session}");
        let renamed = ClientMessage::SessionRename { session_id: session.clone(), title };
        window.call(&renamed).await;
    }
    // One that is closed makes room for another, once its process is gone.
    window.call(&ClientMessage::SessionArchive { session_id: sessions.remove(0) }).await;
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    within("room for another session", async {
        while window.try_call(&create).await.is_err() {
            looks.tick().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_server_raises_its_limit_and_what_it_starts_gets_the_original_one() {
    let wrapper = under("ulimit -Sn 200");
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let setup = TestSetup::start_with(|builder| builder.through(&wrapper)).await;
    let raised = soft_limit(setup.app.pid());
    assert!(raised > 200, "{raised}");

    let (mut window, _, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "run:c1 ulimit\t-Sn").await;
    let answers = screen.answers().concat();
    assert!(answers.contains(r#""output":"200\n""#), "a terminal has another limit: {answers}");
    setup.create(&mut window, "claude-code").await;

    let agents = descendants(setup.app.pid());
    assert!(agents.len() >= 4, "two guardians and two agents: {agents:?}");
    for pid in agents {
        assert_eq!(soft_limit(pid), 200, "process {pid}");
    }
}

/// A process over its file-size limit sees what it would see on a full disk: half a write, then an error.
#[tokio::test]
async fn a_full_disk_costs_no_file_that_an_agent_writes() {
    let ignoring = ["sh", "-c", r#"trap "" XFSZ; exec "$0" "$@""#];
    let setup = TestSetup::start_with(|builder| builder.through(&ignoring)).await;
    let (mut window, _, mut screen) = setup.begin("codex").await;
    let project = setup.app.home().join("project");
    let (file, linked, other) = (project.join("file"), project.join("linked"), project.join("other"));
    std::fs::write(&file, "the user's work").unwrap();
    std::fs::write(&linked, "the user's other work").unwrap();
    std::fs::hard_link(&linked, &other).unwrap();
    let write = |path: &std::path::Path, text: &str| format!("write:{}={text}", path.display());
    screen.converse(&mut window, "say:ready").await;

    let pid = Pid::from_raw(setup.app.pid().cast_signed());
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(64), maximum: None }).unwrap();
    for path in [&file, &linked] {
        screen.converse(&mut window, &write(path, &"new ".repeat(100))).await;
        let answers = screen.answers().join(" ");
        assert!(answers.contains("File too large"), "{answers}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "the user's work");
    assert_eq!(std::fs::read_to_string(&linked).unwrap(), "the user's other work");
    prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();

    for path in [&file, &linked] {
        screen.converse(&mut window, &write(path, "new")).await;
        assert_eq!(std::fs::read_to_string(path).unwrap(), "new");
    }
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "new", "two names of one file");
    let mut names: Vec<_> = std::fs::read_dir(&project).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["file", "linked", "other"], "nothing is left beside them");
}

/// Children of a process, and theirs.
fn descendants(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children = tasks.flatten().flat_map(|task| {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()
    });
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}
