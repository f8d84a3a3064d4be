//! The approximate memory size of a tool call's details, for the limit of a turn.

use protocol::{Permission, ToolContent, ToolDetail, ToolLocation};
use serde_json::{Map, Value};

pub(crate) fn arguments_bytes(arguments: &Map<String, Value>) -> usize {
    arguments.iter().map(|(name, value)| size_of::<String>() + name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_bytes).sum(),
        Value::Object(fields) => arguments_bytes(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

pub(crate) fn detail_bytes(detail: &ToolDetail) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let contents = detail.content.iter().map(|content| {
        let inside = match content {
            ToolContent::Diff { path, old_text, new_text, .. } => path.len() + optional(old_text) + new_text.len(),
            ToolContent::File { path, text, .. } => path.len() + text.len(),
            ToolContent::Image { mime_type, data } => mime_type.len() + data.len(),
            ToolContent::Text { text } => text.len(),
        };
        size_of::<ToolContent>() + inside
    });
    let locations = detail.locations.iter().map(|location| size_of::<ToolLocation>() + location.path.len());
    let option = detail.permission.as_ref().map_or(0, |Permission { option, .. }| optional(option));
    optional(&detail.title) + optional(&detail.command) + option + contents.sum::<usize>() + locations.sum::<usize>()
}
