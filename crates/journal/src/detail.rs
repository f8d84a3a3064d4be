//! The detail of a tool call as JSON, without what its row holds already.
//!
//! Agents repeat themselves: the text of a file that was written is an argument as well, the text of a file that was
//! read is the output without line numbers. Such a text is kept once; in its place, `sameAs` names where it is.

use std::borrow::Cow;

use protocol::ToolDetail;
use serde_json::{Map, Value};

/// Below this a reference is hardly shorter than the text.
const SHARED_BYTES_MIN: usize = 64;

/// Arguments are searched for equal texts as far as this.
const ARGUMENTS_MAX: usize = 64;

const SAME_AS: &str = "sameAs";
const OUTPUT: &str = "output";
const UNNUMBERED_OUTPUT: &str = "output without line numbers";

/// Without the times, which are columns.
pub(crate) fn encode(
    detail: &ToolDetail,
    arguments: &Map<String, Value>,
    output: Option<&str>,
) -> serde_json::Result<String> {
    let mut json = serde_json::to_value(detail)?;
    if let Some(fields) = json.as_object_mut() {
        fields.retain(|field, _| field != "startedAt" && field != "endedAt");
    }
    let mut sources = Vec::new();
    for (key, value) in arguments {
        collect(format!("/{}", escaped(key)), value, &mut sources);
    }
    share(&mut json, &sources, output);
    if let Some(contents) = json.get_mut("content").and_then(Value::as_array_mut) {
        for content in contents {
            share(content, &sources, output);
        }
    }
    serde_json::to_string(&json)
}

/// None: it is no detail that [`encode`] made.
pub(crate) fn decode(json: &[u8], arguments: &Map<String, Value>, output: Option<&str>) -> Option<ToolDetail> {
    let mut json: Value = serde_json::from_slice(json).ok()?;
    restore(&mut json, arguments, output)?;
    if let Some(contents) = json.get_mut("content").and_then(Value::as_array_mut) {
        for content in contents {
            restore(content, arguments, output)?;
        }
    }
    serde_json::from_value(json).ok()
}

/// Texts with the JSON pointers that lead to them.
fn collect<'a>(pointer: String, value: &'a Value, sources: &mut Vec<(String, &'a str)>) {
    if sources.len() >= ARGUMENTS_MAX {
        return;
    }
    match value {
        Value::String(text) if text.len() >= SHARED_BYTES_MIN => sources.push((pointer, text)),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                collect(format!("{pointer}/{index}"), value, sources);
            }
        }
        Value::Object(values) => {
            for (key, value) in values {
                collect(format!("{pointer}/{}", escaped(key)), value, sources);
            }
        }
        _ => {}
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn share(object: &mut Value, sources: &[(String, &str)], output: Option<&str>) {
    let Some(fields) = object.as_object_mut() else { return };
    let mut same = Map::new();
    for (field, value) in fields.iter() {
        let Some(text) = value.as_str().filter(|text| text.len() >= SHARED_BYTES_MIN) else { continue };
        let argument = sources.iter().find(|(_, source)| *source == text).map(|(pointer, _)| pointer.as_str());
        let source = argument.map(|pointer| format!("arguments{pointer}")).or_else(|| {
            let output = output?;
            let name = if output == text {
                OUTPUT
            } else if output.len() > text.len() && unnumbered(output) == text {
                UNNUMBERED_OUTPUT
            } else {
                return None;
            };
            Some(name.to_owned())
        });
        if let Some(source) = source {
            same.insert(field.clone(), Value::String(source));
        }
    }
    if !same.is_empty() {
        fields.retain(|field, _| !same.contains_key(field));
        fields.insert(SAME_AS.into(), Value::Object(same));
    }
}

fn restore(object: &mut Value, arguments: &Map<String, Value>, output: Option<&str>) -> Option<()> {
    let fields = object.as_object_mut()?;
    let Some(same) = fields.shift_remove(SAME_AS) else { return Some(()) };
    for (field, source) in same.as_object()? {
        let text: Cow<'_, str> = match source.as_str()? {
            OUTPUT => output?.into(),
            UNNUMBERED_OUTPUT => unnumbered(output?).into(),
            source => {
                let pointer = source.strip_prefix("arguments/")?;
                let (key, rest) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
                arguments.get(&key.replace("~1", "/").replace("~0", "~"))?.pointer(rest)?.as_str()?.into()
            }
        };
        fields.insert(field.clone(), Value::String(text.into_owned()));
    }
    Some(())
}

/// `  12→text` or `12<tab>text` without its number, in each line.
fn unnumbered(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    for (index, line) in output.split('\n').enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let rest = line.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = rest.len() < line.trim_start_matches(' ').len();
        let kept = rest.strip_prefix('→').or_else(|| rest.strip_prefix('\t')).filter(|_| is_numbered);
        text.push_str(kept.unwrap_or(line));
    }
    text
}

#[cfg(test)]
mod tests {
    use protocol::ToolContent;
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn check(detail: &ToolDetail, arguments: &Map<String, Value>, output: Option<&str>) -> String {
        let encoded = encode(detail, arguments, output).unwrap();
        assert_eq!(decode(encoded.as_bytes(), arguments, output).as_ref(), Some(detail), "{encoded}");
        encoded
    }

    #[test]
    fn a_text_that_is_an_argument_is_kept_once() {
        let text = "fn main() {}\n".repeat(20);
        let content = ToolContent::Diff { path: "/a".into(), old_text: None, new_text: text.clone(), start_line: None };
        let detail = ToolDetail { command: Some(text.clone()), content: vec![content], ..ToolDetail::default() };
        let given = arguments(json!({ "a/b~c": { "edits": ["short", text] } }));
        let encoded = check(&detail, &given, None);
        assert!(!encoded.contains("fn main"), "{encoded}");
        check(&detail, &arguments(json!({ "other": 1 })), None);
    }

    #[test]
    fn a_file_that_was_read_is_its_output_without_line_numbers() {
        let text = "one\n\n3 three\n  four\t4\n".repeat(5);
        for mark in ["→", "\t"] {
            let lines = text.split('\n').enumerate().map(|(n, line)| format!("{:>6}{mark}{line}", n + 1));
            let output = lines.collect::<Vec<_>>().join("\n");
            let content = ToolContent::File { path: "/a".into(), start_line: 1, text: text.clone() };
            let detail = ToolDetail { content: vec![content], ..ToolDetail::default() };
            let encoded = check(&detail, &Map::new(), Some(&output));
            assert!(!encoded.contains("three"), "{encoded}");
            check(&detail, &Map::new(), Some(&text));
            assert!(check(&detail, &Map::new(), None).contains("three"));
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_unreadable() {
        let json = br#"{"kind":"other","sameAs":{"title":"arguments/gone/0"}}"#;
        assert_eq!(decode(json, &Map::new(), Some("x")), None);
        assert_eq!(decode(br#"{"sameAs":{"title":"output"}}"#, &Map::new(), None), None);
    }
}
