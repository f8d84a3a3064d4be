//! What an agent's program is called: `node /…/codex-acp/dist/index.js` is codex-acp, not node.

use std::path::{Path, PathBuf};

use agent_process::AgentCommand;

/// Programs that run another one, which is named by their first argument that is no flag.
const RUNNERS: [&str; 10] = ["node", "nodejs", "npx", "bun", "bunx", "deno", "python", "python3", "uvx", "sh"];
/// Files and directories whose name is not that of the package they are in.
const NAMELESS: [&str; 10] = ["index", "main", "cli", "dist", "bin", "build", "lib", "src", "out", "__main__"];

/// The program as people know it. One that was not found is named as it was looked for.
pub(super) fn of(command: &AgentCommand, is_found: bool) -> String {
    let program = Path::new(&command.program);
    let is_runner = program.file_name().is_some_and(|name| RUNNERS.iter().any(|runner| name == *runner));
    let script = command.args.iter().find(|arg| !arg.as_encoded_bytes().starts_with(b"-")).map(Path::new);
    let named = match script {
        Some(script) if is_found && is_runner => package_of(script),
        _ => program.to_owned(),
    };
    named.to_string_lossy().into_owned()
}

/// The script, or the nearest directory around it that has a name of its own.
fn package_of(script: &Path) -> PathBuf {
    let says_something =
        |path: &&Path| path.file_stem().is_some_and(|stem| !NAMELESS.iter().any(|nameless| stem == *nameless));
    script.ancestors().find(says_something).unwrap_or(script).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_named_and_not_what_runs_it() {
        let check = |line: &str, expected: &str| {
            assert_eq!(of(&AgentCommand::parse(line).unwrap(), true), expected, "{line}");
        };
        check("codex-acp --flag x", "codex-acp");
        check("node /opt/x/bin/codex-acp", "/opt/x/bin/codex-acp");
        check("/usr/bin/node --no-warnings /opt/codex-acp/dist/index.js --flag", "/opt/codex-acp");
        check("npx @agentclientprotocol/codex-acp", "@agentclientprotocol/codex-acp");
        check("node", "node");
        check("node index.js", "index.js");
        let missing = AgentCommand::parse("no-such-node /opt/codex-acp").unwrap();
        assert_eq!(of(&missing, false), "no-such-node");
    }
}
