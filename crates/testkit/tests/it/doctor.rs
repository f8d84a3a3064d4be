//! `liminal-builder doctor`: each line says ok, or what to do.

use std::path::Path;

use protocol::{ClientMessage, ServerMessage};
use serde_json::{Value, json};
use testkit::{TestApp, TestSetup, command_at, programs, within};

/// What it found, and whether all is well.
async fn examined(home: &Path, args: &[&str], environment: &[(&str, &str)]) -> (i32, Value) {
    let mut command = command_at(home, &[args, &["doctor", "--json"]].concat());
    let output = within("doctor", command.envs(environment.iter().copied()).output()).await.unwrap();
    let code = output.status.code().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (report["ok"].as_bool(), report["version"].as_str()),
        (Some(code == 0), Some(env!("CARGO_PKG_VERSION")))
    );
    (code, report["findings"].clone())
}

#[track_caller]
fn finding<'a>(findings: &'a Value, area: &str) -> &'a Value {
    let mut all = findings.as_array().unwrap().iter();
    all.find(|finding| finding["area"] == area).unwrap_or_else(|| panic!("nothing about {area} in {findings}"))
}

#[track_caller]
fn check(findings: &Value, area: &str, status: &str, message: &str, advice: &str) {
    let found = finding(findings, area);
    assert_eq!(found["status"], status, "{found}");
    assert!(found["message"].as_str().unwrap().contains(message), "{found}");
    assert!(found["advice"].as_str().unwrap_or_default().contains(advice), "{found}");
    assert_eq!(found["advice"].is_string(), status != "ok", "{found}");
}

/// No agent of the machine the test runs on.
const NO_AGENTS: [(&str, &str); 2] = [("CLAUDE_CMD", "no-such-claude"), ("CODEX_ACP_CMD", "no-such-codex")];

#[tokio::test]
async fn on_a_new_machine_it_says_what_to_install_and_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (code, findings) = examined(home.path(), &["--port", "0"], &NO_AGENTS).await;
    assert_eq!(code, 0, "{findings}");
    check(&findings, "Data directory", "ok", "is made at the first start", "");
    check(&findings, "Secret", "ok", "is made at the first start", "");
    check(&findings, "Server", "note", "not running", "Start it with `liminal-builder`.");
    check(&findings, "Port", "ok", "is free", "");
    check(&findings, "Claude Code", "note", "not installed: there is no program no-such-claude", "npm install");
    check(&findings, "Codex", "note", "not installed", "npm install");
    check(&findings, "Demo agent", "ok", "answers and gives a session", "");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn it_says_when_few_files_may_be_open() {
    let home = tempfile::tempdir().unwrap();
    let program = programs::liminal_builder().display().to_string();
    for (limit, status, message, advice) in
        [("300", "note", "at most 300", "ulimit -n"), ("2000", "ok", "at most 2000", "")]
    {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", "ulimit -n \"$1\" && exec \"$0\" --port 0 doctor --json --no-start", &program, limit]);
        let output = within("doctor", command.env("HOME", home.path()).envs(NO_AGENTS).output()).await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        check(&report["findings"], "Open files", status, message, advice);
    }
}

#[tokio::test]
async fn a_running_server_and_its_agents_are_found_well_and_not_disturbed() {
    let setup = TestSetup::start().await;
    let agent = programs::scripted_agent().display().to_string();
    let (claude, codex) = (format!("'{agent}' claude"), format!("'{agent}' acp"));
    let state = setup.app.home().join("other-state");
    std::fs::create_dir(&state).unwrap();
    let before = setup.agent_log();
    let environment =
        [("CLAUDE_CMD", claude.as_str()), ("CODEX_ACP_CMD", &codex), ("SCRIPTED_AGENT_STATE", state.to_str().unwrap())];
    let (code, findings) = examined(setup.app.home(), &[], &environment).await;
    assert_eq!(code, 0, "{findings}");
    check(&findings, "Data directory", "ok", "for your eyes only", "");
    check(&findings, "projects.json", "ok", "1 kept", "");
    check(&findings, "Secret", "ok", "for your eyes only", "");
    check(&findings, "Server", "ok", &format!("http://{} answers, version", setup.app.host()), "");
    check(&findings, "Page", "ok", "opens with the secret, and not without", "");
    check(&findings, "Claude Code", "ok", "answers", "");
    check(&findings, "Codex", "ok", "answers and gives a session", "");
    assert_eq!(setup.agent_log(), before, "the server's own agent was not spoken to");
    let mut window = setup.app.window().await;
    assert!(setup.sessions(&mut window).await.is_empty());
}

#[tokio::test]
async fn what_is_broken_is_a_problem_with_what_to_do_and_exit_code_1() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join(".liminal-builder");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("projects.json"), "{").unwrap();
    std::fs::write(data.join("sessions.json"), r#"{"version": 7}"#).unwrap();
    std::fs::write(data.join("token"), "short").unwrap();
    let agents = json!({"agent_servers": {
        "Gone": {"command": "no-such-agent"},
        "Mute": {"command": "/bin/sh", "args": ["-c", "echo the licence has run out >&2; exit 3"]},
    }});
    std::fs::write(data.join("agents.json"), agents.to_string()).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, findings) = examined(home.path(), &["--port", &port], &NO_AGENTS).await;
    assert_eq!(code, 1);
    check(&findings, "Data directory", "note", "can be looked into by others", "chmod 700");
    check(&findings, "projects.json", "problem", "damaged", "set aside");
    check(&findings, "sessions.json", "problem", "newer Liminal Builder (file version 7)", "Use the newer one");
    check(&findings, "agents.json", "ok", "Gone, Mute", "");
    check(&findings, "Secret", "problem", "holds no secret", "Restart");
    check(&findings, "Port", "problem", &format!("port {port} on 127.0.0.1 is in use"), "--port");
    check(&findings, "Gone", "problem", "there is no program no-such-agent", "agents.json");
    check(&findings, "Mute", "problem", "the licence has run out", "Run `/bin/sh -c ");
    assert_eq!(std::fs::read_to_string(data.join("projects.json")).unwrap(), "{", "it fixes nothing");
}

#[tokio::test]
async fn a_mistake_in_agents_json_is_named_and_the_other_entries_are_tried() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join(".liminal-builder");
    std::fs::create_dir(&data).unwrap();
    let agents = json!({"agent_servers": {
        "Gemini": {"args": []},
        "demo": {"command": "mine"},
        "Mute": {"command": "/bin/sh", "args": ["-c", "exit 3"]},
    }});
    std::fs::write(data.join("agents.json"), agents.to_string()).unwrap();
    let (code, findings) = examined(home.path(), &["--port", "0"], &NO_AGENTS).await;
    assert_eq!(code, 1);
    let of_file: Vec<_> =
        findings.as_array().unwrap().iter().filter(|finding| finding["area"] == "agents.json").collect();
    let text = |place: usize| format!("{} {}", of_file[place]["message"], of_file[place]["advice"]);
    assert_eq!((of_file.len(), &of_file[0]["status"], &of_file[0]["message"]), (3, &"ok".into(), &"Mute".into()));
    assert!(text(1).contains("missing field `command`") && text(1).contains("Fix that entry of"), "{}", text(1));
    assert_eq!(text(1).matches("missing field").count(), 1, "reported once: {}", text(1));
    assert!(text(2).contains("the built-in agent Demo agent has that name"), "{}", text(2));
    check(&findings, "Mute", "problem", "Could not", "Run `/bin/sh -c 'exit 3'` in a terminal");
    check(&findings, "Demo agent", "ok", "answers", "");

    std::fs::write(data.join("agents.json"), "{").unwrap();
    let (_, findings) = examined(home.path(), &["--port", "0"], &NO_AGENTS).await;
    check(&findings, "agents.json", "problem", "not in the expected form", "none of its agents is offered");
}

#[tokio::test]
async fn a_disk_that_takes_nothing_more_is_a_problem() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".liminal-builder")).unwrap();
    let command = command_at(home.path(), &["--port", "0", "doctor", "--json", "--no-start"]);
    // No file may grow: what a full disk does, to this one process.
    let mut limited = tokio::process::Command::new("/bin/sh");
    limited.args(["-c", r#"trap '' XFSZ; ulimit -f 0; exec "$0" "$@""#]);
    limited.arg(command.as_std().get_program()).args(command.as_std().get_args());
    let environment = command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?)));
    limited.env_clear().envs(environment).envs(NO_AGENTS);
    let output = within("doctor", limited.output()).await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    check(&report["findings"], "Disk", "problem", "nothing can be written to", "Make room");
    assert_eq!(std::fs::read_dir(home.path().join(".liminal-builder")).unwrap().count(), 0, "the probe leaves nothing");

    let (_, findings) = examined(home.path(), &["--port", "0"], &NO_AGENTS).await;
    assert!(finding(&findings, "Disk")["message"].as_str().unwrap().contains("MiB free"), "{findings}");
}

#[tokio::test]
async fn a_server_that_lets_everyone_in_and_one_with_another_secret_are_reported() {
    let app = TestApp::builder().arg("--no-auth").start().await;
    let (_, findings) = examined(app.home(), &[], &NO_AGENTS).await;
    check(&findings, "Page", "note", "every user of this machine", "--no-auth");

    let app = TestApp::start().await;
    std::fs::write(app.data_dir().join("token"), "0".repeat(64)).unwrap();
    let (code, findings) = examined(app.home(), &[], &NO_AGENTS).await;
    assert_eq!(code, 1);
    check(&findings, "Page", "problem", "does not take the secret", "Restart");
}

#[tokio::test]
async fn windows_show_a_login_where_it_can_be_known() {
    let setup = TestSetup::start_with(|builder| builder.env("OPENAI_API_KEY", "").env("CODEX_HOME", "")).await;
    let mut window = setup.app.window().await;
    let mut logged_in = async |cli_type: &str| {
        let ServerMessage::AgentList { agents } = window.call(&ClientMessage::AgentList {}).await else {
            panic!("no list")
        };
        agents.iter().find(|agent| agent.cli_type.as_str() == cli_type).unwrap().logged_in
    };
    assert_eq!((logged_in("codex").await, logged_in("demo").await), (Some(false), None));
    let codex = setup.app.home().join(".codex");
    std::fs::create_dir(&codex).unwrap();
    std::fs::write(codex.join("auth.json"), "{}").unwrap();
    assert_eq!(logged_in("codex").await, Some(true));
}

#[tokio::test]
async fn people_get_lines_without_colours_in_a_pipe() {
    let home = tempfile::tempdir().unwrap();
    let mut command = command_at(home.path(), &["--port", "0", "doctor", "--no-start"]);
    let output = within("doctor", command.envs(NO_AGENTS).output()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("ok Data directory  "), "{text}");
    assert!(text.contains("-- Codex ") && text.contains("→ npm install"), "{text}");
    assert!(text.ends_with("Everything that is there works.\n") && !text.contains('\x1b'), "{text}");
}

/// Issue 17: an agent without a login was "ok".
#[tokio::test]
async fn without_starting_an_agent_it_still_says_that_no_login_was_found() {
    let home = tempfile::tempdir().unwrap();
    let (claude, codex) = (home.path().join("claude"), home.path().join("codex-acp"));
    let script = "if [ \"$1\" = --version ]; then echo '9.0.0 (Claude Code)'; else echo '{\"loggedIn\": false}'; fi";
    std::fs::write(&claude, script).unwrap();
    std::fs::write(&codex, "echo 2.6.0").unwrap();
    let agents = [
        ("CLAUDE_CMD", format!("sh '{}'", claude.display())),
        ("CODEX_ACP_CMD", format!("sh '{}'", codex.display())),
        ("OPENAI_API_KEY", String::new()),
    ];
    let mut command = command_at(home.path(), &["--port", "0", "doctor", "--json", "--no-start"]);
    let output = within("doctor", command.envs(agents).output()).await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    check(&report["findings"], "Claude Code", "note", "9.0.0, but no login", "Log in with `claude /login`.");
    check(&report["findings"], "Codex", "note", "codex-acp, but no login", "Log in with `codex login`.");
    assert_eq!(output.status.code(), Some(0), "{report}");
}

#[tokio::test]
async fn the_real_agents_say_whether_they_are_logged_in() {
    let home = tempfile::tempdir().unwrap();
    let (claude, codex) = (programs::claude().display().to_string(), programs::codex_acp().display().to_string());
    let agents = [
        ("CLAUDE_CMD", claude.as_str()),
        ("CODEX_ACP_CMD", codex.as_str()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("ACP_START_TIMEOUT_MS", "60000"),
        // Nothing listens there: whatever it asks of the network is answered at once.
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
    ];
    let without = [("ANTHROPIC_API_KEY", ""), ("OPENAI_API_KEY", "")];
    let (code, findings) = examined(home.path(), &["--port", "0"], &[&agents[..], &without].concat()).await;
    assert_eq!(code, 1, "{findings}");
    check(&findings, "Claude Code", "problem", "not logged in", "/login");
    check(&findings, "Codex", "problem", "not logged in", "Log in with the agent's own program");

    let with = [("ANTHROPIC_API_KEY", "not-a-key"), ("OPENAI_API_KEY", "not-a-key")];
    let (code, findings) = examined(home.path(), &["--port", "0"], &[&agents[..], &with].concat()).await;
    assert_eq!(code, 0, "{findings}");
    check(&findings, "Claude Code", "ok", "logged in (ANTHROPIC_API_KEY)", "");
    check(&findings, "Codex", "ok", "from the environment", "");
}
