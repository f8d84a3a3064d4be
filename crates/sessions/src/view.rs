//! What our own page gets of an item: offsets and rendered blocks instead of whole texts.
//!
//! Rendering is incremental and shared: one state per item, brought up to date by whichever window reads first; each
//! window then takes the part it lacks.

use std::sync::Arc;

use protocol::{BlockPatch, Origin, SectionKind, ToolContent, ToolDetail, ToolKind, ToolSection, UpsertView};
use rendering::{Cut, DiffView, LiveMarkdown, LiveTerminal};
use serde_json::{Map, Value};
use upserts::{ItemBody, ItemUpdate, Text};

use crate::item::Sent;

/// Longest string among a tool's arguments that a page gets; the rest is in the rendered sections.
const ARGUMENT_BYTES_MAX: usize = 2048;

/// Lines of output a page gets; the rest is counted, and comes by `session:output`.
const OUTPUT_CUT: Cut = Cut { head: 200, tail: 400 };
/// Lines of a file that was read, and rows of an edit.
const SECTION_CUT: Cut = Cut { head: 300, tail: 100 };

/// The rendered state of one item.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    prose: Option<(Text, LiveMarkdown)>,
    output: Option<(Text, LiveTerminal)>,
    /// The detail the sections were made from, kept so that its address stays its identity.
    sections: Option<(Arc<ToolDetail>, Vec<ToolSection>)>,
}

impl Rendered {
    /// Renders what is new and gives what a window lacks, given what it has; afterwards it lacks nothing.
    pub(crate) fn bring_up_to_date(&mut self, update: &ItemUpdate, sent: &mut Sent) -> UpsertView {
        match &update.body {
            ItemBody::Message { text, origin: Origin::Agent } | ItemBody::Thinking { text, .. } => {
                let content_from = offset(text, sent);
                let live = advance(&mut self.prose, text, LiveMarkdown::new, LiveMarkdown::push);
                if update.status.is_final() {
                    live.finish();
                }
                let blocks = live.patch_since(sent.mark);
                sent.mark = live.mark();
                sent.text = Some(text.clone());
                UpsertView { content_from, blocks: Some(wire(blocks)), sections: None }
            }
            // The user's own messages and notices are shown as they are.
            ItemBody::Message { text, .. } => {
                let content_from = offset(text, sent);
                sent.text = Some(text.clone());
                UpsertView { content_from, ..UpsertView::default() }
            }
            ItemBody::ToolCall { output, tool, .. } => {
                let mut view = UpsertView::default();
                if is_whole_file(update) {
                    if sent.text.is_some() {
                        sent.start_over();
                        view.blocks = Some(BlockPatch { from: 0, keep: 0, html: Vec::new() });
                    }
                } else if let Some(output) = output {
                    offset(output, sent);
                    let live = advance(&mut self.output, output, || LiveTerminal::new(OUTPUT_CUT), LiveTerminal::push);
                    view.blocks = Some(wire(live.patch_since(sent.mark)));
                    sent.mark = live.mark();
                    sent.text = Some(output.clone());
                }
                if let Some(tool) = tool
                    && !sent.sections.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, tool))
                {
                    view.sections = Some(self.sections_of(tool));
                    sent.sections = Some(Arc::clone(tool));
                }
                view
            }
        }
    }

    fn sections_of(&mut self, tool: &Arc<ToolDetail>) -> Vec<ToolSection> {
        match &self.sections {
            Some((of, sections)) if Arc::ptr_eq(of, tool) || of.content == tool.content => sections.clone(),
            _ => {
                let sections: Vec<_> = tool.content.iter().map(|content| section(content, SECTION_CUT)).collect();
                self.sections = Some((Arc::clone(tool), sections.clone()));
                sections
            }
        }
    }
}

/// The text as it is, for an item that the renderer could not take.
pub(crate) fn unrendered(update: &ItemUpdate) -> UpsertView {
    let text = match &update.body {
        ItemBody::Message { text, .. } | ItemBody::Thinking { text, .. } => Some(text),
        ItemBody::ToolCall { output, .. } => output.as_ref(),
    };
    let text = text.map(ToString::to_string).unwrap_or_default();
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let blocks = BlockPatch { from: 0, keep: 0, html: vec![format!("<p class=\"html\">{escaped}</p>").into()] };
    UpsertView { blocks: Some(blocks), ..UpsertView::default() }
}

/// Where the text continues what the window has. When it does not, the window starts over.
fn offset(text: &Text, sent: &mut Sent) -> Option<usize> {
    match &sent.text {
        Some(earlier) if text.continues(earlier) => Some(earlier.utf16_len()),
        Some(_) => {
            sent.start_over();
            None
        }
        None => None,
    }
}

/// Feeds a renderer what it has not seen yet.
fn advance<'r, R>(
    slot: &'r mut Option<(Text, R)>,
    text: &Text,
    new: impl FnOnce() -> R,
    push: impl FnOnce(&mut R, &str),
) -> &'r mut R {
    let stale = slot.as_ref().is_some_and(|(seen, _)| !text.continues(seen));
    if stale {
        *slot = None;
    }
    let (seen, renderer) = slot.get_or_insert_with(|| (Text::default(), new()));
    if text.len() > seen.len() || seen.is_empty() {
        push(renderer, &text.from_byte(seen.len()));
    }
    *seen = text.clone();
    renderer
}

fn wire(patch: rendering::BlockPatch) -> BlockPatch {
    BlockPatch { from: patch.from, keep: patch.keep, html: patch.html.into_iter().map(Into::into).collect() }
}

/// A file that was read is there as a file; the text beside it is what the model got to see of the same.
fn is_whole_file(update: &ItemUpdate) -> bool {
    let ItemBody::ToolCall { tool: Some(tool), is_error, .. } = &update.body else { return false };
    let is_file = |content: &ToolContent| matches!(content, ToolContent::File { .. });
    *is_error != Some(true) && tool.kind == ToolKind::Read && tool.content.iter().any(is_file)
}

fn section(content: &ToolContent, cut: Cut) -> ToolSection {
    let plain = |kind, path: Option<&String>, html: String, hidden: usize| ToolSection {
        kind,
        path: path.cloned(),
        html: html.into(),
        added: None,
        removed: None,
        cut_lines: (hidden > 0).then_some(hidden),
    };
    match content {
        ToolContent::Diff { path, old_text, new_text, start_line } => {
            let view = DiffView { first_line: start_line.unwrap_or(1) as usize, cut, ..DiffView::default() };
            let diff = rendering::diff(old_text.as_deref(), new_text, path, view);
            ToolSection {
                added: Some(diff.added),
                removed: Some(diff.removed),
                ..plain(SectionKind::Diff, Some(path), diff.html, diff.hidden)
            }
        }
        ToolContent::File { path, start_line, text } => {
            let lines = rendering::file_read(text, *start_line as usize, path, cut);
            plain(SectionKind::File, Some(path), lines.html, lines.hidden)
        }
        ToolContent::Image { mime_type, data } => {
            let html = rendering::image(mime_type, data)
                .unwrap_or_else(|error| rendering::markdown(&format!("*The picture is not shown: {error}*")).concat());
            plain(SectionKind::Image, None, html, 0)
        }
        ToolContent::Text { text } => plain(SectionKind::Text, None, rendering::markdown(text).concat(), 0),
    }
}

/// A tool call's sections and then its output, uncut.
pub(crate) fn whole_output(update: &ItemUpdate) -> Vec<String> {
    let ItemBody::ToolCall { output, tool, .. } = &update.body else { return Vec::new() };
    let contents = tool.iter().flat_map(|tool| &tool.content);
    let sections = contents.map(|content| section(content, Cut::WHOLE).html.to_string());
    let output = output.as_ref().filter(|_| !is_whole_file(update));
    let output = output.map(|output| rendering::terminal(&output.to_string(), Cut::WHOLE).html);
    sections.chain(output).collect()
}

/// The detail without what is sent as rendered sections.
pub(crate) fn without_content(tool: &Arc<ToolDetail>) -> Arc<ToolDetail> {
    if tool.content.is_empty() {
        return Arc::clone(tool);
    }
    Arc::new(ToolDetail { content: Vec::new(), ..ToolDetail::clone(tool) })
}

/// Arguments with long strings cut: a page shows a line of them, and the sections show the rest.
pub(crate) fn short_arguments(arguments: &Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
    let long = |value: &Value| matches!(value, Value::String(text) if text.len() > ARGUMENT_BYTES_MAX);
    if !arguments.values().any(long) {
        return Arc::clone(arguments);
    }
    let short = arguments.iter().map(|(key, value)| {
        let value = match value {
            Value::String(text) if text.len() > ARGUMENT_BYTES_MAX => {
                Value::String(format!("{}…", &text[..text.floor_char_boundary(ARGUMENT_BYTES_MAX)]))
            }
            other => other.clone(),
        };
        (key.clone(), value)
    });
    Arc::new(short.collect())
}
