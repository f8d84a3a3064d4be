//! Agents that a window adds, edits, tries and removes while the server runs.

use std::os::unix::fs::PermissionsExt;

use protocol::{
    AgentConfig, AgentDefinition, AgentEntry, CliType, ClientMessage, EnvVariable, ErrorCode, ErrorMessage, ProbeLogin,
    ProbeOutcome, ServerFrame, ServerMessage, SessionId,
};
use serde_json::{Value, json};
use testkit::{Screen, TestApp, TestSetup, Window, programs, within};

/// The scripted agent over ACP, with a directory of its own.
fn scripted(setup: &TestSetup, name: &str) -> AgentDefinition {
    let state = setup.app.home().join(format!("state-of-{name}"));
    std::fs::create_dir_all(&state).unwrap();
    AgentDefinition {
        name: name.into(),
        command: programs::scripted_agent().display().to_string(),
        args: vec!["acp".into()],
        env: vec![EnvVariable { name: "SCRIPTED_AGENT_STATE".into(), value: state.display().to_string() }],
    }
}

fn definition(name: &str, command: &str, args: &[&str]) -> AgentDefinition {
    AgentDefinition {
        name: name.into(),
        command: command.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
    }
}

fn read(answer: ServerMessage) -> AgentConfig {
    match answer {
        ServerMessage::AgentConfig { config } => config,
        other => panic!("{other:?}"),
    }
}

async fn config(window: &mut Window) -> AgentConfig {
    read(window.call(&ClientMessage::AgentConfig {}).await)
}

async fn save(
    window: &mut Window,
    replaces: Option<&str>,
    definition: AgentDefinition,
) -> Result<AgentConfig, ErrorMessage> {
    let revision = config(window).await.revision;
    let save = ClientMessage::AgentSave { revision, replaces: replaces.map(ToOwned::to_owned), definition };
    window.try_call(&save).await.map(read)
}

async fn remove(window: &mut Window, name: &str) -> Result<AgentConfig, ErrorMessage> {
    let revision = config(window).await.revision;
    window.try_call(&ClientMessage::AgentRemove { revision, name: name.into() }).await.map(read)
}

async fn probe(window: &mut Window, message: ClientMessage) -> ProbeOutcome {
    match window.call(&message).await {
        ServerMessage::AgentProbed { outcome } => outcome,
        other => panic!("{other:?}"),
    }
}

fn file(app: &TestApp) -> Value {
    serde_json::from_str(&std::fs::read_to_string(app.data_dir().join("agents.json")).unwrap()).unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    within(what, async {
        while !is_so() {
            looks.tick().await;
        }
    })
    .await;
}

/// The list of agents came, with exactly these names.
fn offers(names: &'static [&'static str]) -> impl Fn(&ServerFrame) -> bool {
    move |frame| match &frame.message {
        ServerMessage::AgentList { agents } => agents.iter().map(|agent| agent.name.as_str()).eq(names.iter().copied()),
        _ => false,
    }
}

#[tokio::test]
async fn an_agent_is_added_tried_used_edited_and_removed_without_a_restart() {
    let setup = TestSetup::start().await;
    let (mut window, mut other) = (setup.app.window().await, setup.app.window().await);

    let mine = scripted(&setup, "Mine");
    let tried = probe(&mut window, ClientMessage::AgentProbeDefinition { definition: mine.clone() }).await;
    assert!(matches!(&tried, ProbeOutcome::Works { login: ProbeLogin::GivesSession {}, .. }), "{tried:?}");
    assert!(!setup.app.data_dir().join("agents.json").exists(), "trying saves nothing");

    let saved = save(&mut window, None, mine.clone()).await.unwrap();
    other.until("the new agent in every window", offers(&["Claude Code", "Codex", "Mine", "Demo agent"])).await;
    assert_eq!(saved.problem, None);
    let cli_type = CliType::parse("Mine").unwrap();
    assert!(saved.agents.contains(&AgentEntry::Configured { cli_type: cli_type.clone(), definition: mine.clone() }));
    let env = json!({"SCRIPTED_AGENT_STATE": mine.env[0].value});
    let expected = json!({"agent_servers": {"Mine": {"command": mine.command, "args": ["acp"], "env": env}}});
    assert_eq!(file(&setup.app), expected);
    let mode = std::fs::metadata(setup.app.data_dir().join("agents.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let first = setup.create(&mut window, "Mine").await.id;
    let mut first_screen = Screen::open(&mut window, &first).await;
    first_screen.converse(&mut window, "say:one").await;
    let tried = probe(&mut window, ClientMessage::AgentProbe { cli_type }).await;
    assert!(matches!(tried, ProbeOutcome::Works { .. }), "{tried:?}");

    // The live session keeps its agent; the next one gets the new definition.
    let edited = scripted(&setup, "Other");
    let edited = AgentDefinition { name: "Mine".into(), ..edited };
    save(&mut window, Some("Mine"), edited).await.unwrap();
    let second = setup.create(&mut window, "Mine").await.id;
    let mut second_screen = Screen::open(&mut window, &second).await;
    second_screen.converse(&mut window, "say:two").await;
    first_screen.converse(&mut window, "say:three").await;
    let prompts = |name: &str, session: &SessionId| {
        let log = std::fs::read_to_string(setup.app.home().join(format!("state-of-{name}/log"))).unwrap();
        log.matches(&format!("session/prompt {}", session.agent_session_id())).count()
    };
    assert_eq!((prompts("Mine", &first), prompts("Mine", &second)), (2, 0));
    assert_eq!((prompts("Other", &first), prompts("Other", &second)), (0, 1));
    // Nobody uses the agent of the old definition any more, so its process ends.
    window.call(&ClientMessage::SessionArchive { session_id: first }).await;
    let log = setup.app.home().join("state-of-Mine/log");
    let has_ended = || std::fs::read_to_string(&log).unwrap().lines().last() == Some("end of input");
    until("the old agent to end", has_ended).await;

    remove(&mut window, "Mine").await.unwrap();
    other.until("the agent to be gone", offers(&["Claude Code", "Codex", "Demo agent"])).await;
    assert_eq!(file(&setup.app), json!({"agent_servers": {}}));
    second_screen.converse(&mut window, "say:still here").await;
    let cli_type = CliType::parse("Mine").unwrap();
    let refused = window.try_call(&ClientMessage::SessionCreate { project_id: setup.project.clone(), cli_type }).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::UnsupportedCliType);
}

/// They hold the values of environment variables, which may be secrets.
#[tokio::test]
async fn definitions_go_only_to_the_window_that_asked() {
    let setup = TestSetup::start().await;
    let (mut window, mut other) = (setup.app.window().await, setup.app.window().await);
    save(&mut window, None, scripted(&setup, "Mine")).await.unwrap();
    loop {
        let frame = other.next_frame().await;
        let text = serde_json::to_string(&frame).unwrap();
        assert!(
            !matches!(frame.message, ServerMessage::AgentConfig { .. }) && !text.contains("state-of-Mine"),
            "{text}"
        );
        if offers(&["Claude Code", "Codex", "Mine", "Demo agent"])(&frame) {
            break;
        }
    }
}

#[tokio::test]
async fn agents_that_no_longer_are_offered_end_with_the_server() {
    let mut setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let script = "read -r _; echo $$ > \"$PID_FILE.part\" && mv \"$PID_FILE.part\" \"$PID_FILE\"; exec \"$0\" acp";
    let pid_file = setup.app.home().join("agent.pid");
    let mut mine = scripted(&setup, "Mine");
    // The line that the shell reads is lost; the agent is spoken to once more by a handshake that never comes.
    mine.args = vec!["-c".into(), script.into(), std::mem::replace(&mut mine.command, "/bin/sh".into())];
    mine.env.push(EnvVariable { name: "PID_FILE".into(), value: pid_file.display().to_string() });
    save(&mut window, None, mine).await.unwrap();
    let cli_type = CliType::parse("Mine").unwrap();
    window.ask(&ClientMessage::SessionCreate { project_id: setup.project.clone(), cli_type }).await;
    until("the agent to start", || pid_file.exists()).await;
    let agent = std::path::Path::new("/proc").join(std::fs::read_to_string(&pid_file).unwrap().trim());
    assert!(agent.exists());
    remove(&mut window, "Mine").await.unwrap();
    assert!(agent.exists(), "it is still being used");
    setup.app.interrupt();
    assert_eq!(setup.app.ended().await.code(), Some(0));
    assert!(!agent.exists(), "it was waited for");
}

#[tokio::test]
async fn what_is_wrong_with_a_definition_is_reported_with_its_field_and_nothing_is_saved() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    save(&mut window, None, definition("Mine", "mine", &[])).await.unwrap();
    let before = file(&setup.app);
    for (wrong, field, message) in [
        (definition(" ", "x", &[]), "definition.name", "must not be blank"),
        (definition("New", " ", &[]), "definition.command", "must not be blank"),
        (definition("New", "x", &["a\0"]), "definition.args[0]", "NUL"),
        (definition("Mine", "x", &[]), "definition.name", "There is an agent Mine already."),
        (definition("mine", "x", &[]), "definition.name", "too much like that of Mine"),
        (definition("codex", "x", &[]), "definition.name", "The built-in agent Codex has that name."),
        (definition("Claude Code", "x", &[]), "definition.name", "The built-in agent Claude Code has that name."),
        (definition("demo", "x", &[]), "definition.name", "The built-in agent Demo agent has that name."),
        (definition("…", "x", &[]), "definition.name", "The name must start with"),
    ] {
        let error = save(&mut window, None, wrong.clone()).await.unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidMessage, Some(field)), "{wrong:?}");
        assert!(error.message.contains(message), "{wrong:?}: {}", error.message);
    }
    assert_eq!(file(&setup.app), before);
}

#[tokio::test]
async fn what_was_changed_in_the_file_meanwhile_is_not_overwritten_and_is_taken_into_effect() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let stale = save(&mut window, None, definition("Mine", "mine", &[])).await.unwrap().revision;
    let by_an_editor = r#"{"theme": "dark", "agent_servers": {"Edited": {"command": "e", "favorite": true}}}"#;
    std::fs::write(setup.app.data_dir().join("agents.json"), by_an_editor).unwrap();

    let save_late = ClientMessage::AgentSave {
        revision: stale.clone(),
        replaces: None,
        definition: definition("Late", "late", &[]),
    };
    let remove_late = ClientMessage::AgentRemove { revision: stale, name: "Mine".into() };
    for late in [save_late, remove_late] {
        let error = window.try_call(&late).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::AgentsFileChanged, "{error:?}");
        assert_eq!(std::fs::read_to_string(setup.app.data_dir().join("agents.json")).unwrap(), by_an_editor);
    }

    config(&mut window).await;
    window.until("the edited list", offers(&["Claude Code", "Codex", "Edited", "Demo agent"])).await;
    save(&mut window, Some("Edited"), definition("Edited", "f", &["x"])).await.unwrap();
    let expected =
        json!({"theme": "dark", "agent_servers": {"Edited": {"command": "f", "favorite": true, "args": ["x"]}}});
    assert_eq!(file(&setup.app), expected);
}

#[tokio::test]
async fn a_damaged_file_is_explained_never_overwritten_and_costs_no_agent_that_runs() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    save(&mut window, None, scripted(&setup, "Mine")).await.unwrap();
    let (path, damaged) = (setup.app.data_dir().join("agents.json"), "{ \"agent_servers\": // mine");
    std::fs::write(&path, damaged).unwrap();

    let shown = config(&mut window).await;
    let problem = shown.problem.unwrap();
    assert!(problem.contains("not in the expected form") && problem.contains("line 1"), "{problem}");
    assert_eq!(shown.file, path.display().to_string());
    let refused = save(&mut window, None, definition("New", "new", &[])).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::AgentsFileUnusable, "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged);
    setup.create(&mut window, "Mine").await;

    // An entry that cannot be used is shown with the reason, costs no other, and can be removed.
    std::fs::write(&path, r#"{"agent_servers": {"Half": {"args": []}, "Mine": {"command": "mine"}}}"#).unwrap();
    let shown = config(&mut window).await;
    let half = |entry: &AgentEntry| match entry {
        AgentEntry::Unusable { name, reason } => name == "Half" && reason.contains("command"),
        _ => false,
    };
    assert!(shown.agents.iter().any(half), "{shown:?}");
    remove(&mut window, "Half").await.unwrap();
    assert_eq!(file(&setup.app), json!({"agent_servers": {"Mine": {"command": "mine"}}}));
}

#[tokio::test]
async fn a_failed_try_says_what_went_wrong_and_what_to_do_and_runs_no_shell() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let mut try_it = async |definition: AgentDefinition| match probe(
        &mut window,
        ClientMessage::AgentProbeDefinition { definition },
    )
    .await
    {
        ProbeOutcome::Failed { message, detail, advice } => (message, detail.unwrap_or_default(), advice),
        other => panic!("{other:?}"),
    };
    let (message, detail, advice) = try_it(definition("Gone", "no-such-agent", &["--acp"])).await;
    assert_eq!(message, "Could not start Gone. Check that it's installed.");
    assert!(detail.contains("no-such-agent") && advice.contains("full path"), "{detail} {advice}");

    let (message, detail, advice) =
        try_it(definition("", "/bin/sh", &["-c", "echo the licence has run out >&2; exit 3"])).await;
    assert!(message.contains("This agent") && detail.contains("the licence has run out"), "{message} {detail}");
    assert!(advice.contains("Run `/bin/sh -c 'echo the licence"), "{advice}");

    let pwned = setup.app.home().join("pwned");
    try_it(definition("X", &format!("touch {0}; $(touch {0})", pwned.display()), &["; touch pwned"])).await;
    try_it(definition("X", "false", &[&format!("; touch {0}", pwned.display()), "$(touch pwned)"])).await;
    assert!(!pwned.exists());
}

#[tokio::test]
async fn the_built_in_agents_are_tried_beside_the_ones_in_use() {
    let setup = TestSetup::start().await;
    let (mut window, _, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "say:one").await;
    for cli_type in ["codex", "demo"] {
        let cli_type = CliType::parse(cli_type).unwrap();
        let tried = probe(&mut window, ClientMessage::AgentProbe { cli_type }).await;
        assert!(matches!(tried, ProbeOutcome::Works { .. }), "{tried:?}");
    }
    screen.converse(&mut window, "say:two").await;
    let cli_type = CliType::parse("nobody").unwrap();
    let refused = window.try_call(&ClientMessage::AgentProbe { cli_type }).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnsupportedCliType);

    let shown = config(&mut window).await.agents;
    let variables: Vec<_> = shown
        .iter()
        .map(|entry| match entry {
            AgentEntry::BuiltIn { name, variable, .. } => (name.as_str(), variable.as_deref()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [("Claude Code", Some("CLAUDE_CMD")), ("Codex", Some("CODEX_ACP_CMD")), ("Demo agent", None)];
    assert_eq!(variables, expected);
}
