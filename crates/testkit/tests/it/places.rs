//! Directories of projects and sessions: the branch they are on, what opens them, what their sessions begin with, and which
//! are suggested.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use protocol::{
    CliType, ClientMessage, ErrorCode, OpenTarget, ProjectDefaults, RecentDirectory, RecentSource, ServerFrame,
    ServerMessage, ServerSettings, SessionFacts,
};
use testkit::{Builder, Screen, TestSetup, within};

fn project_dir(setup: &TestSetup) -> PathBuf {
    setup.app.home().join("project")
}

fn check_out(setup: &TestSetup, branch: &str) {
    let git = project_dir(setup).join(".git");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
}

fn is_on(branch: &'static str) -> impl Fn(&ServerFrame) -> bool {
    move |frame| matches!(&frame.message, ServerMessage::SessionFacts { facts: SessionFacts { branch: Some(now), .. }, .. } if now == branch)
}

#[tokio::test]
async fn a_session_shows_the_branch_of_its_directory_and_follows_it_when_a_turn_ends() {
    let setup = TestSetup::start().await;
    check_out(&setup, "main");
    let (mut window, session, mut screen) = setup.begin("codex").await;
    window.until("the branch", is_on("main")).await;
    // An agent switches branches in the middle of a turn.
    check_out(&setup, "feature/queue");
    screen.converse(&mut window, "say:done").await;
    window.until("the new branch", is_on("feature/queue")).await;
    // Who opens the session later gets it, and nothing of it is left when the repository is gone.
    std::fs::remove_dir_all(project_dir(&setup).join(".git")).unwrap();
    let mut later = setup.app.window().await;
    Screen::open(&mut later, &session).await;
    later.until("the branch to be gone", is_on("")).await;
}

/// A program in the home's `bin`, which is all of the server's `PATH` but for what a script needs.
fn write_program(home: &Path, name: &str, script: &str) {
    let bin = home.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Reports where it was started, with which arguments, and whether it leads a session of its own.
const REPORT: &str = r#"{ pwd; for word in "$@"; do echo "$word"; done; [ "$(cut -d' ' -f6 /proc/$$/stat)" = $$ ] && echo own session; } > "$HOME/opened.new"
mv "$HOME/opened.new" "$HOME/opened""#;

fn with_editor(builder: Builder) -> Builder {
    write_program(builder.home(), "code", REPORT);
    let path = format!("{}:/usr/bin:/bin", builder.home().join("bin").display());
    builder.env("PATH", path).env("DISPLAY", ":99").env("VISUAL", "vi").env("EDITOR", "").env("SSH_CONNECTION", "")
}

async fn opened(setup: &TestSetup) -> String {
    let file = setup.app.home().join("opened");
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    within("the program to say what it was given", async {
        loop {
            if let Ok(text) = std::fs::read_to_string(&file) {
                std::fs::remove_file(&file).unwrap();
                return text;
            }
            looks.tick().await;
        }
    })
    .await
}

fn set_editor(command: &str) -> ClientMessage {
    ClientMessage::SettingsSet { editor: Some(command.into()), terminal: None }
}

#[tokio::test]
async fn a_directory_is_opened_in_the_editor_as_one_argument_and_never_through_a_shell() {
    let setup = TestSetup::start_with(with_editor).await;
    let directory = std::fs::canonicalize(project_dir(&setup)).unwrap().display().to_string();
    let (mut window, session_id, _) = setup.begin("codex").await;
    let in_editor = ClientMessage::SessionOpenIn { session_id, target: OpenTarget::Editor };
    window.call(&in_editor).await;
    assert_eq!(opened(&setup).await, format!("{directory}\n{directory}\nown session\n"), "the first editor found");

    let hostile = "code '$(touch pwned)' ; touch pwned `touch pwned` --at={dir}";
    window.call(&set_editor(hostile)).await;
    window.call(&ClientMessage::ProjectOpenIn { project_id: setup.project.clone(), target: OpenTarget::Editor }).await;
    let args = "$(touch pwned)\n;\ntouch\npwned\n`touch\npwned`";
    assert_eq!(opened(&setup).await, format!("{directory}\n{args}\n--at={directory}\nown session\n"));
    assert!(!project_dir(&setup).join("pwned").exists());
}

#[tokio::test]
async fn the_command_of_the_settings_is_kept_and_a_wrong_one_says_what_to_do() {
    let setup = TestSetup::start_with(with_editor).await;
    write_program(setup.app.home(), "broken", "exit 3");
    let mut window = setup.app.window().await;
    let open = ClientMessage::ProjectOpenIn { project_id: setup.project.clone(), target: OpenTarget::Editor };
    let settings = |answer| match answer {
        ServerMessage::SettingsCurrent { settings } => settings,
        other => panic!("{other:?}"),
    };
    let first: ServerSettings = settings(window.call(&ClientMessage::SettingsGet {}).await);
    assert_eq!((first.editor.command.as_str(), first.editor.default_command.as_deref()), ("", Some("code")));

    for (command, message) in [
        ("no-such-editor", "`no-such-editor` was not found. Install it, or name another one in Settings"),
        ("broken", "`broken` ended at once (exit status: 3). Try the command in a terminal"),
    ] {
        let mut other = setup.app.window().await;
        window.call(&set_editor(command)).await;
        let is_news = |frame: &ServerFrame| matches!(&frame.message, ServerMessage::SettingsCurrent { settings } if settings.editor.command == command);
        other.until("the news in another window", is_news).await;
        let error = window.try_call(&open).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::OpenFailed);
        assert!(error.message.contains(message), "{}", error.message);
    }
    let refused = window.try_call(&set_editor("code 'open")).await.unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("editor"));
    assert_eq!(refused.message, "The command for the editor has a quote that is not closed.");
    drop(window);

    let setup = {
        let mut ending = setup;
        ending.app.interrupt();
        ending.app.ended().await;
        ending.again_with(with_editor).await
    };
    let kept = settings(setup.app.window().await.call(&ClientMessage::SettingsGet {}).await);
    assert_eq!(kept.editor.command, "broken");
}

#[tokio::test]
async fn without_a_display_nothing_is_opened_and_that_is_reported() {
    let setup =
        TestSetup::start_with(|builder| with_editor(builder).env("DISPLAY", "").env("WAYLAND_DISPLAY", "")).await;
    let mut window = setup.app.window().await;
    let ServerMessage::ServerHello { has_display, .. } = window.next_frame().await.message else { panic!("no hello") };
    assert!(!has_display);
    let open = ClientMessage::ProjectOpenIn { project_id: setup.project.clone(), target: OpenTarget::Terminal };
    let error = window.try_call(&open).await.unwrap_err();
    assert_eq!(error.message, "There is no display where Liminal Builder runs, so no terminal can be shown there.");
}

fn defaults(cli_type: &str, mode: &str) -> ProjectDefaults {
    let options = [("mode".to_owned(), mode.to_owned())].into();
    ProjectDefaults { cli_type: CliType::parse(cli_type).unwrap(), options }
}

#[tokio::test]
async fn new_sessions_begin_with_their_projects_defaults_also_after_a_restart() {
    let mut setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let set = |defaults| ClientMessage::ProjectSetDefaults { project_id: setup.project.clone(), defaults };
    let ServerMessage::ProjectUpdated { project } = window.call(&set(Some(defaults("codex", "code")))).await else {
        panic!("not updated")
    };
    assert_eq!(project.defaults, Some(defaults("codex", "code")));
    let (mut own, _, mut screen) = setup.begin("codex").await;
    screen.converse(&mut own, "mode").await;
    assert_eq!(screen.answers(), ["code"]);
    // Another agent's sessions are not touched by them.
    setup.begin("claude-code").await;

    // The command line goes by them too.
    let directory = project_dir(&setup).display().to_string();
    let made = setup.app.run(&["new", "--json", "-C", &directory]).await;
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(made["cliType"], "codex", "although Claude Code stands first");

    setup.app.interrupt();
    setup.app.ended().await;
    let setup = setup.again().await;
    let (mut window, _, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "mode").await;
    assert_eq!(screen.answers(), ["code"]);
    let none = ClientMessage::ProjectSetDefaults { project_id: setup.project.clone(), defaults: None };
    window.call(&none).await;
    let (mut window, _, mut screen) = setup.begin("codex").await;
    screen.converse(&mut window, "mode").await;
    assert_eq!(screen.answers(), ["none"], "nobody asked the agent for a mode");
}

#[tokio::test]
async fn a_session_that_cannot_have_its_projects_default_is_not_created_and_that_is_reported() {
    let setup = TestSetup::start().await;
    let mut window = setup.app.window().await;
    let set = |defaults| ClientMessage::ProjectSetDefaults { project_id: setup.project.clone(), defaults };
    window.call(&set(Some(defaults("codex", "dance")))).await;
    let create =
        ClientMessage::SessionCreate { project_id: setup.project.clone(), cli_type: CliType::parse("codex").unwrap() };
    let error = window.try_call(&create).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::SessionCreateFailed);
    let detail = error.detail.unwrap_or_default();
    assert!(detail.contains("Change it in the project's menu, under Defaults."), "{detail}");
    assert!(setup.sessions(&mut window).await.is_empty());
    let refused = window.try_call(&set(Some(defaults("no-such-agent", "code")))).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnsupportedCliType);
}

#[tokio::test]
async fn directories_worked_in_before_are_suggested_and_repositories_are_marked() {
    let setup = TestSetup::start().await;
    let home = std::fs::canonicalize(setup.app.home()).unwrap();
    let records = home.join(".claude/projects/-code-atlas");
    std::fs::create_dir_all(home.join("code/atlas/.git")).unwrap();
    std::fs::create_dir_all(home.join("code/ferry")).unwrap();
    std::fs::create_dir_all(&records).unwrap();
    let entry = serde_json::json!({"type": "user", "cwd": home.join("code/atlas")});
    std::fs::write(records.join("1.jsonl"), format!("{entry}\n")).unwrap();

    let mut window = setup.app.window().await;
    window.call(&ClientMessage::ProjectRemove { project_id: setup.project.clone() }).await;
    let ServerMessage::PathRecents { directories } = window.call(&ClientMessage::PathRecent {}).await else {
        panic!("no recent directories")
    };
    let recent = |name: &str, source, is_repository| RecentDirectory {
        path: home.join(name).display().to_string(),
        source,
        is_repository,
    };
    assert_eq!(
        directories,
        [recent("project", RecentSource::Removed, false), recent("code/atlas", RecentSource::Agent, true)]
    );
    let prefix = format!("{}/", home.join("code").display());
    let ServerMessage::PathCompletions { paths, .. } = window.call(&ClientMessage::PathComplete { prefix }).await
    else {
        panic!("no completions")
    };
    assert_eq!(paths.iter().map(|path| path.is_repository).collect::<Vec<_>>(), [true, false]);
}
