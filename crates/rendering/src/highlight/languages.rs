//! The grammar for the language of a fence or a file.

use std::borrow::Cow;

/// The grammar's token for the info string of a fence (`Rust`, `ts,ignore`, `{.python}`), or `None` for no language.
pub(super) fn token(language: &str) -> Option<Cow<'_, str>> {
    let name = name(language)?;
    let lower = name.to_ascii_lowercase();
    Some(match lower.as_str() {
        "c#" | "csharp" => "cs".into(),
        "c++" | "cxx" | "hpp" => "cpp".into(),
        "console" | "shell" | "shellscript" | "shell-session" | "zsh" | "ksh" => "bash".into(),
        "docker" | "containerfile" => "dockerfile".into(),
        "golang" => "go".into(),
        "js" | "node" | "mjs" | "cjs" => "javascript".into(),
        // The Babel grammar of the set is not shipped; TSX reads JSX.
        "jsx" | "javascriptreact" | "typescriptreact" => "tsx".into(),
        "json5" | "jsonc" | "jsonl" | "ndjson" => "json".into(),
        "kts" => "kotlin".into(),
        "make" | "mk" => "makefile".into(),
        "mts" | "cts" => "ts".into(),
        "patch" | "udiff" => "diff".into(),
        "posh" | "pwsh" | "ps" => "powershell".into(),
        "proto" | "proto3" => "protobuf".into(),
        "py3" | "python3" | "pyi" => "python".into(),
        "text" | "txt" | "plain" | "plaintext" | "output" => return None,
        _ => lower.into(),
    })
}

/// The language as a label: the first word of the fence's info string.
pub(crate) fn name(info: &str) -> Option<&str> {
    let word = info.split(|c: char| c.is_whitespace() || c == ',' || c == ';').find(|word| !word.is_empty())?;
    let word = word.trim_matches(['{', '}', '.']);
    (!word.is_empty()).then_some(word)
}

/// The usual spelling of a fence's language; an unknown language is shown as it was written.
pub(crate) fn label(info: &str) -> Option<Cow<'_, str>> {
    let written = name(info)?;
    Some(match written.to_ascii_lowercase().as_str() {
        "bash" | "sh" | "zsh" | "shell" | "console" => "Shell".into(),
        "c" => "C".into(),
        "cpp" | "c++" | "cxx" => "C++".into(),
        "cs" | "csharp" | "c#" => "C#".into(),
        "css" => "CSS".into(),
        "diff" | "patch" => "Diff".into(),
        "docker" | "dockerfile" => "Dockerfile".into(),
        "go" | "golang" => "Go".into(),
        "graphql" => "GraphQL".into(),
        "html" => "HTML".into(),
        "java" => "Java".into(),
        "js" | "javascript" | "mjs" | "cjs" => "JavaScript".into(),
        "json" => "JSON".into(),
        "jsx" => "JSX".into(),
        "kotlin" | "kt" => "Kotlin".into(),
        "markdown" | "md" => "Markdown".into(),
        "php" => "PHP".into(),
        "py" | "python" | "python3" => "Python".into(),
        "rb" | "ruby" => "Ruby".into(),
        "rs" | "rust" => "Rust".into(),
        "sql" => "SQL".into(),
        "swift" => "Swift".into(),
        "toml" => "TOML".into(),
        "ts" | "typescript" => "TypeScript".into(),
        "tsx" => "TSX".into(),
        "xml" => "XML".into(),
        "yaml" | "yml" => "YAML".into(),
        _ => written.into(),
    })
}

/// The file that a fence names after its language (`ts src/queue.ts`), if any.
pub(crate) fn file(info: &str) -> Option<&str> {
    let word = info.split_whitespace().nth(1)?;
    let is_path = word.contains(['/', '.']) && !word.contains(['=', '{', '}', '"']);
    is_path.then_some(word)
}

/// The language of a file, by its name.
pub(crate) fn of_path(path: &str) -> &str {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    match file.rsplit_once('.') {
        Some((_, extension)) if !extension.is_empty() => extension,
        _ => file,
    }
}
