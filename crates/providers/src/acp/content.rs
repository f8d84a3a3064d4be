//! Content blocks and raw values as text.

use std::borrow::Cow;

use agent_client_protocol_schema::v1 as acp;
use serde_json::Value;

/// A block of a message. What is not text is named, so that nothing goes missing without a trace.
pub(crate) fn block_text(block: acp::ContentBlock) -> String {
    match block {
        acp::ContentBlock::Text(text) => text.text,
        acp::ContentBlock::Image(image) => format!("[image: {}]", image.mime_type),
        acp::ContentBlock::Audio(audio) => format!("[audio: {}]", audio.mime_type),
        acp::ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => {
                format!("[{}]({})\n\n{}", file_name(&text.uri), text.uri, text.text)
            }
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => {
                format!("[{}]({})", file_name(&blob.uri), blob.uri)
            }
            _ => "[resource]".into(),
        },
        _ => "[unknown content]".into(),
    }
}

fn file_name(uri: &str) -> &str {
    uri.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri)
}

/// The message inside a model server's error, where an agent passes it on as the JSON it got.
pub(crate) fn plain_message(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with('{') {
        return text.into();
    }
    let value: Option<Value> = serde_json::from_str(text).ok();
    let message = value.as_ref().and_then(|value| value.pointer("/error/message")?.as_str());
    message.map_or(text.into(), |message| message.to_owned().into())
}

/// Adapters wrap output in a code fence for clients that show Markdown; ours shows it as output.
pub(crate) fn without_fence(text: &str) -> &str {
    let unfenced = || {
        let body = text.trim_end().strip_prefix("```")?.strip_suffix("```")?;
        let (language, body) = body.split_once('\n')?;
        let is_language = language.chars().all(|letter| letter.is_ascii_alphanumeric());
        (is_language && !body.contains("\n```")).then_some(body)
    };
    unfenced().map_or(text, |body| body.strip_suffix('\n').unwrap_or(body))
}

/// What a tool gave back, from `rawOutput`: agents put a text, blocks, or an object of their own there.
pub(crate) fn raw_output_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) if !blocks.is_empty() && blocks.iter().all(|block| block["text"].is_string()) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(fields) => {
            let field = |name: &str| fields.get(name).and_then(Value::as_str);
            if let Some(output) = field("aggregated_output").or_else(|| field("output")).or_else(|| field("text")) {
                return output.to_owned();
            }
            if let Some(stdout) = field("stdout") {
                return [stdout, field("stderr").unwrap_or_default()].concat();
            }
            let says_something = fields.keys().any(|name| !matches!(name.as_str(), "exit_code" | "exitCode"));
            if says_something { pretty(value) } else { String::new() }
        }
        other => pretty(other),
    }
}

/// How a command ended, wherever the agent put it.
pub(crate) fn exit_code(raw_output: &Value) -> Option<i32> {
    ["/exit_code", "/exitCode", "/metadata/exit", "/metadata/exit_code"]
        .iter()
        .find_map(|place| raw_output.pointer(place)?.as_i64())
        .and_then(|code| i32::try_from(code).ok())
}

/// The command line in a tool's arguments. A list that only hands a script to a shell is that script.
pub(crate) fn command_line(raw_input: &Value) -> Option<String> {
    let command = ["command", "cmd", "script"].iter().find_map(|name| raw_input.get(name))?;
    match command {
        Value::String(text) => Some(without_shell(text).to_owned()),
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            match parts[..] {
                [_, "-c" | "-lc", script] => Some(script.to_owned()),
                [] => None,
                _ => Some(parts.join(" ")),
            }
        }
        _ => None,
    }
}

/// `/bin/bash -lc 'touch a'` is `touch a`.
fn without_shell(text: &str) -> &str {
    let script = ["/bin/bash -lc '", "/bin/sh -lc '", "/bin/bash -c '", "/bin/sh -c '", "bash -lc '"]
        .iter()
        .find_map(|shell| text.strip_prefix(shell)?.strip_suffix('\''));
    script.filter(|script| !script.contains('\'')).unwrap_or(text)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fence_around_the_whole_output_is_taken_off() {
        assert_eq!(without_fence("```console\nhi\nho\n```"), "hi\nho");
        assert_eq!(without_fence("```\n1\t# Demo\n```\n"), "1\t# Demo");
        for kept in
            ["hi", "```a\n1\n```\ntext", "text\n```\n1\n```", "```\n1\n```\n```\n2\n```", "``` not a word\nx\n```"]
        {
            assert_eq!(without_fence(kept), kept);
        }
    }

    #[test]
    fn a_tools_raw_output_reads_as_its_text() {
        assert_eq!(raw_output_text(&json!("done")), "done");
        assert_eq!(raw_output_text(&json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])), "a\nb");
        assert_eq!(raw_output_text(&json!({"stdout": "out", "stderr": "err", "exit_code": 1})), "outerr");
        assert_eq!(raw_output_text(&json!({"stdout": "x", "aggregated_output": "all"})), "all");
        assert_eq!(raw_output_text(&json!({"exit_code": 0})), "");
        assert_eq!(raw_output_text(&json!({"rows": 3})), "{\n  \"rows\": 3\n}");
    }

    #[test]
    fn a_command_is_found_without_its_shell() {
        assert_eq!(command_line(&json!({"command": "ls -l"})).as_deref(), Some("ls -l"));
        assert_eq!(command_line(&json!({"command": ["/bin/bash", "-lc", "ls -l"]})).as_deref(), Some("ls -l"));
        assert_eq!(command_line(&json!({"command": ["git", "status"]})).as_deref(), Some("git status"));
        assert_eq!(command_line(&json!({"command": "/bin/bash -lc 'touch zz'"})).as_deref(), Some("touch zz"));
        assert_eq!(command_line(&json!({"command": "/bin/sh -c 'a' 'b'"})).as_deref(), Some("/bin/sh -c 'a' 'b'"));
        assert_eq!(command_line(&json!({"path": "x"})), None);
    }
}
