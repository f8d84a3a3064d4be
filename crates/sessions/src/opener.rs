//! Opens a directory in the user's editor or terminal, on the machine the server runs on.
//!
//! Comes in: a directory that the catalog knows, and the settings. Goes out: a program that runs, or a sentence that says
//! what to do. Kept out: paths and programs that a page names. A command is the one in the settings or one of the defaults
//! below, its words are arguments and never a line for a shell.

use std::ffi::OsStr;
use std::path::Path;

use agent_process::{DetachedError, find_program, start_detached};
use catalog::Settings;
use protocol::{OpenTarget, OpenerSetting, ServerSettings};

use crate::error::ServiceError;

/// Stands for the directory in a command.
const DIRECTORY: &str = "{dir}";

/// Editors with a window of their own, by the name of their program. `VISUAL` and `EDITOR` often name one that needs a
/// terminal, which we do not have.
const GRAPHICAL_EDITORS: [&str; 26] = [
    "bbedit",
    "clion",
    "code",
    "code-insiders",
    "codium",
    "cursor",
    "fleet",
    "gedit",
    "gnome-text-editor",
    "goland",
    "gvim",
    "idea",
    "kate",
    "lapce",
    "mate",
    "mvim",
    "nova",
    "phpstorm",
    "pycharm",
    "rubymine",
    "rustrover",
    "subl",
    "webstorm",
    "windsurf",
    "zed",
    "zeditor",
];

/// Looked for in this order when the user has set none.
const EDITORS: [&[&str]; 7] =
    [&["code"], &["cursor"], &["zed"], &["zeditor"], &["subl"], &["idea"], &["gnome-text-editor"]];

/// As [`EDITORS`]. Each begins in the directory it is started in; the option is for those that hand over to a process that
/// runs already.
#[cfg(not(target_os = "macos"))]
const TERMINALS: [&[&str]; 10] = [
    &["x-terminal-emulator"],
    &["gnome-terminal", "--working-directory={dir}"],
    &["konsole", "--workdir", "{dir}"],
    &["alacritty", "--working-directory", "{dir}"],
    &["kitty", "--directory", "{dir}"],
    &["ghostty", "--working-directory={dir}"],
    &["wezterm", "start", "--cwd", "{dir}"],
    &["foot", "--working-directory={dir}"],
    &["xfce4-terminal", "--working-directory={dir}"],
    &["xterm"],
];
#[cfg(target_os = "macos")]
const TERMINALS: [&[&str]; 1] = [&["open", "-a", "Terminal", "{dir}"]];

/// What windows show of the settings. Looks for programs on the disk: call it where blocking is allowed.
pub(crate) fn describe(settings: &Settings) -> ServerSettings {
    let setting = |set: Option<&catalog::CommandWords>, target| OpenerSetting {
        command: set.map(catalog::CommandWords::line).unwrap_or_default(),
        default_command: default_words(target).map(|words| words.join(" ")),
    };
    ServerSettings {
        editor: setting(settings.editor.as_ref(), OpenTarget::Editor),
        terminal: setting(settings.terminal.as_ref(), OpenTarget::Terminal),
    }
}

/// Starts the program and returns when it runs.
pub(crate) async fn open(
    target: OpenTarget,
    settings: Settings,
    directory: &Path,
    has_display: bool,
) -> Result<(), ServiceError> {
    let failed = |sentence: String| ServiceError::OpenFailed(sentence);
    let what = name(target);
    if !has_display {
        return Err(failed(format!(
            "There is no display where Liminal Builder runs, so no {what} can be shown there."
        )));
    }
    if !directory.is_dir() {
        return Err(failed(format!("The directory {} is not there any more.", directory.display())));
    }
    let (set, default) = match target {
        OpenTarget::Editor => (settings.editor, "VISUAL, code, cursor, zed, subl or idea"),
        OpenTarget::Terminal => (settings.terminal, "gnome-terminal, konsole, alacritty, kitty or xterm"),
    };
    let words = match set {
        Some(command) => command.words().to_vec(),
        None => default_words(target).ok_or_else(|| {
            failed(format!("No {what} was found; looked for {default}. Name one in Settings, under Open in."))
        })?,
    };
    let Some(path) = directory.to_str() else {
        return Err(failed("The name of this directory is not text, so it cannot be handed on.".into()));
    };
    start_detached(&with_directory(target, words, path), directory).await.map_err(|error| {
        let advice = match &error {
            DetachedError::NotFound(_) => "Install it, or name another one in Settings, under Open in.",
            DetachedError::NotStarted { .. } | DetachedError::EndedAtOnce { .. } => {
                "Try the command in a terminal, or change it in Settings, under Open in."
            }
        };
        failed(format!("The {what} could not be opened: {error}. {advice}"))
    })
}

fn name(target: OpenTarget) -> &'static str {
    match target {
        OpenTarget::Editor => "editor",
        OpenTarget::Terminal => "terminal",
    }
}

/// Puts the directory where the command wants it. An editor whose command has no place for it gets it as its last
/// argument. A terminal is started in the directory anyway, and most of them would take an argument for a command to run.
fn with_directory(target: OpenTarget, words: Vec<String>, directory: &str) -> Vec<String> {
    let is_placed = words.iter().any(|word| word.contains(DIRECTORY));
    let mut words: Vec<String> = words.into_iter().map(|word| word.replace(DIRECTORY, directory)).collect();
    if !is_placed && target == OpenTarget::Editor {
        words.push(directory.to_owned());
    }
    words
}

fn default_words(target: OpenTarget) -> Option<Vec<String>> {
    let first = |commands: &[&[&str]]| {
        let found = commands.iter().find(|command| command.first().is_some_and(|name| find_program(name).is_some()));
        found.map(|command| command.iter().map(ToString::to_string).collect())
    };
    match target {
        OpenTarget::Editor => ["VISUAL", "EDITOR"]
            .iter()
            .filter_map(|name| std::env::var(name).ok())
            .find_map(|line| graphical(&line))
            .or_else(|| first(&EDITORS)),
        OpenTarget::Terminal => first(&TERMINALS),
    }
}

/// The words of a command of the environment, if it is an editor with a window that is there.
fn graphical(line: &str) -> Option<Vec<String>> {
    // Editors are asked to wait by those who want to know when a file is closed; nobody waits here.
    let words: Vec<String> =
        line.split_whitespace().filter(|word| !matches!(*word, "--wait" | "-w")).map(ToOwned::to_owned).collect();
    let program = words.first()?;
    let name = Path::new(program).file_name().and_then(OsStr::to_str)?;
    (GRAPHICAL_EDITORS.contains(&name) && find_program(program).is_some()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_directory_is_one_argument_wherever_the_command_wants_it() {
        let directory = "/home/dev/a b; rm -rf $HOME";
        let editor = with_directory(OpenTarget::Editor, words("code -n"), directory);
        assert_eq!(editor, ["code", "-n", directory]);
        let placed = with_directory(OpenTarget::Editor, words("code --folder={dir} -n"), directory);
        assert_eq!(placed, ["code", &format!("--folder={directory}"), "-n"]);
        assert_eq!(with_directory(OpenTarget::Terminal, words("xterm"), directory), ["xterm"]);
        let terminal = with_directory(OpenTarget::Terminal, words("kitty --directory {dir}"), directory);
        assert_eq!(terminal, ["kitty", "--directory", directory]);
    }

    #[test]
    fn an_editor_that_needs_a_terminal_is_not_taken_from_the_environment() {
        for line in ["", "  ", "vi", "nano -w", "/usr/bin/vim", "no-such-program"] {
            assert_eq!(graphical(line), None, "{line}");
        }
    }

    #[test]
    fn the_names_of_editors_are_in_order() {
        assert!(GRAPHICAL_EDITORS.is_sorted());
    }
}
