//! What the user wrote, without what agents put around it in their histories.

use std::borrow::Cow;

/// More of a text does not tell two prompts apart any better.
const CHARS_MAX: usize = 2_000;
/// The longest name of an attachment.
const LABEL_BYTES_MAX: usize = 300;

/// Blocks that agents add to the user's text.
const ADDED_BLOCKS: [&str; 16] = [
    "bash-stderr",
    "bash-stdout",
    "command-args",
    "command-message",
    "command-name",
    "context",
    "environment_context",
    "ide_opened_file",
    "ide_selection",
    "local-command-caveat",
    "local-command-stderr",
    "local-command-stdout",
    "system-reminder",
    "task-notification",
    "user-prompt-submit-hook",
    "user_instructions",
];
/// What an agent writes in the user's name where a turn was cancelled.
const INTERRUPTED: &str = "[Request interrupted by user";

/// The user's own text on one line, up to a length. Empty if there is nothing of the user's in it.
pub(super) fn normalised(text: &str) -> String {
    if text.trim_start().starts_with(INTERRUPTED) {
        return String::new();
    }
    on_one_line(&without_attachments(&without_blocks(&unwrapped(text))), CHARS_MAX)
}

/// Words with one space between them, up to a length.
pub(super) fn on_one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        let space = usize::from(!line.is_empty());
        let left = chars_max.saturating_sub(chars + space);
        if left == 0 {
            break;
        }
        if space == 1 {
            line.push(' ');
        }
        line.extend(word.chars().take(left));
        chars += space + word.chars().take(left).count();
    }
    line
}

/// Claude Code wraps commands: `<command-name>/review</command-name> … <command-args>it</command-args>`.
fn unwrapped(text: &str) -> Cow<'_, str> {
    let start = text.trim_start();
    if start.starts_with("<command-name>") || start.starts_with("<command-message>") {
        let arguments = inside(start, "command-args").unwrap_or_default();
        return format!("{} {arguments}", inside(start, "command-name").unwrap_or_default()).into();
    }
    match inside(start, "bash-input").filter(|_| start.starts_with("<bash-input>")) {
        Some(command) => format!("!{command}").into(),
        None => text.into(),
    }
}

fn inside<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    Some(after.split_once(&format!("</{name}>"))?.0)
}

fn without_blocks(text: &str) -> Cow<'_, str> {
    if !text.contains("</") {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    // Blocks that do not end any more: each is looked for once.
    let mut endless: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        kept.push_str(before);
        let block = added_block(tag).filter(|name| !endless.contains(name));
        let end = block.and_then(|name| Some((tag.find(&format!("</{name}>"))?, name.len() + 3)));
        match end {
            Some((end, length)) => rest = &tag[end + length..],
            None => {
                endless.extend(block);
                kept.push('<');
                rest = &tag[1..];
            }
        }
    }
    kept.push_str(rest);
    kept.into()
}

fn added_block(tag: &str) -> Option<&'static str> {
    let name_end = tag[1..].find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_'))? + 1;
    let is_tag = tag[name_end..].starts_with(['>', ' ']);
    ADDED_BLOCKS.into_iter().find(|name| is_tag && *name == &tag[1..name_end])
}

/// Without the marks that stand for an attachment: `[@name](uri)`, `[name](file:…)`, `[image: image/png]`.
fn without_attachments(text: &str) -> Cow<'_, str> {
    if !text.contains('[') {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    // Where the next URI ends: looked for once, however many begin in front of it.
    let mut uri_end = 0;
    let mut end_of_uri = |from: usize| {
        if uri_end < from {
            let length = text[from..].find(|letter: char| letter == ')' || letter.is_whitespace());
            uri_end = length.map_or(text.len(), |length| from + length);
        }
        uri_end
    };
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let (before, mark) = rest.split_at(start);
        let from = text.len() - mark.len();
        match attachment_bytes(mark, |bytes| end_of_uri(from + bytes) - from) {
            Some(bytes) => {
                kept.push_str(before.strip_suffix('!').unwrap_or(before));
                rest = &mark[bytes..];
            }
            None => {
                kept.push_str(before);
                kept.push('[');
                rest = &mark[1..];
            }
        }
    }
    kept.push_str(rest);
    kept.into()
}

/// How long the mark is that the text begins with.
fn attachment_bytes(mark: &str, end_of_uri: impl FnOnce(usize) -> usize) -> Option<usize> {
    let label_end = mark.bytes().take(LABEL_BYTES_MAX).position(|byte| byte == b']')?;
    let label = mark[1..label_end].to_ascii_lowercase();
    let after = &mark[label_end + 1..];
    if let Some(uri) = after.strip_prefix('(') {
        let is_attached = label.starts_with('@') || uri.starts_with("file:") || uri.starts_with("data:");
        let end = is_attached.then(|| end_of_uri(label_end + 2))?;
        return mark[end..].starts_with(')').then_some(end + 1);
    }
    let is_kind = |kind: &str| {
        let rest = label.strip_prefix(kind);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':') || rest.starts_with(" #"))
    };
    ["image", "audio", "resource"].into_iter().any(is_kind).then_some(label_end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_put_around_the_users_text_is_left_out() {
        for (recorded, text) in [
            ("  fix\n\tthe  tests\n", "fix the tests"),
            ("fix it<system-reminder>\nThe date is 5.\n</system-reminder>", "fix it"),
            ("<system-reminder>a</system-reminder>fix<context ref=\"file:///a\">\nfn\n</context> it", "fix it"),
            ("<command-name>/review</command-name>\n<command-message>review</command-message>", "/review"),
            (
                "<command-message>review</command-message><command-name>/review</command-name>\
              <command-args>all of it</command-args>",
                "/review all of it",
            ),
            ("<bash-input>ls -l</bash-input>", "!ls -l"),
            ("look\n[@README.md](file:///home/dev/README.md)[@image](data:image/png;base64,iVBO==)", "look"),
            ("look[image: image/png] ![shot](data:image/png;base64,iVBO==)", "look"),
            ("[Image #1] what is this?", "what is this?"),
            ("[Image: source: /tmp/1.png]", ""),
            ("[Request interrupted by user for tool use]", ""),
            ("<local-command-stdout>Total cost: $0</local-command-stdout>", ""),
        ] {
            assert_eq!(normalised(recorded), text, "{recorded}");
        }
    }

    #[test]
    fn what_the_user_wrote_stays() {
        for text in [
            "what does <context> do?",
            "if a < b and c > d </context>",
            "<contexts>a</contexts>",
            "see [the docs](https://example.com/a) and [1] and [imagery]",
            "a[0](b c)",
            "[@unfinished](file:///a",
            "<system-reminder>never ended",
        ] {
            assert_eq!(normalised(text), text);
        }
    }

    #[test]
    fn hostile_texts_take_no_longer_than_others() {
        for piece in ["<context>", "[@a](data:", "<", "[", "[@a](file:b)", "</context>"] {
            let text = piece.repeat(200_000);
            assert!(normalised(&text).chars().count() <= CHARS_MAX);
        }
    }
}
