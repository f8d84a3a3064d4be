//! Settled blocks, and the definitions that can still change them.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::changes::Position;
use super::html::{common_prefix, utf16};
use crate::markdown::{Block, Definitions, Found, Kind, Label, Rendered, Renderer};

/// The settled part of a text.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// The length of this part of the text.
    pub(super) bytes: usize,
    pub(super) blocks: Vec<Arc<str>>,
    /// The definitions in this part.
    pub(super) definitions: Definitions,
    /// The current definitions in the remainder of the text; they may still disappear.
    provisional: Definitions,
    segments: Vec<Segment>,
    /// Segments that refer to a label without a settled definition.
    waiting: HashMap<Label, Vec<usize>>,
}

/// A part of the source that renders the same alone as in its context.
#[derive(Debug)]
struct Segment {
    source: Range<usize>,
    first_block: usize,
}

/// The result of rendering the remainder of a text once more.
pub(super) struct Absorbed {
    /// The first position at which settled blocks had to be rendered again.
    pub(super) rewound: Option<Position>,
    /// The blocks that are not settled.
    pub(super) open: Vec<Block>,
}

impl Settled {
    /// Moves the settled blocks out of `rendered` (the remainder of `text`) and returns the others.
    pub(super) fn absorb(&mut self, text: &str, rendered: Rendered) -> Absorbed {
        let source = &text[self.bytes..];
        let cuts = cuts(source, &rendered.blocks);
        let end = cuts.last().copied().unwrap_or(0);
        let redefined = self.define(rendered.definitions, end);
        let rewound = if redefined.is_empty() { None } else { self.render_waiting(text, &redefined) };

        let mut blocks = rendered.blocks.into_iter().peekable();
        let mut start = 0;
        for cut in cuts {
            self.segments
                .push(Segment { source: self.bytes + start..self.bytes + cut, first_block: self.blocks.len() });
            while let Some(block) = blocks.next_if(|block| block.source.start < cut) {
                self.settle(block);
            }
            start = cut;
        }
        self.bytes += end;
        Absorbed { rewound, open: blocks.collect() }
    }

    /// Whether the remainder of the text defines nothing, or consists of one footnote and defines only that.
    pub(super) fn rest_defines_nothing(&self, rest: &str) -> bool {
        self.provisional.is_empty() || self.provisional.is_one_footnote() && rest.trim_ascii_start().starts_with("[^")
    }

    /// Records the definitions in the remainder of the text, of which the first `end` bytes are now settled. Returns
    /// the labels whose definition has changed.
    fn define(&mut self, found: Vec<Found>, end: usize) -> Vec<Label> {
        if found.is_empty() && self.provisional.is_empty() {
            return Vec::new();
        }
        let mut before = std::mem::take(&mut self.provisional);
        let mut redefined = Vec::new();
        for Found { label, definition, at, .. } in found {
            if self.definitions.get(&label).is_some() {
                continue;
            }
            if before.remove(&label).as_ref() != Some(&definition) {
                redefined.push(label.clone());
            }
            if at < end {
                self.definitions.add(label, definition);
            } else {
                self.provisional.add(label, definition);
            }
        }
        // The definitions that are left have disappeared.
        redefined.extend(before.into_labels());
        redefined
    }

    fn settle(&mut self, block: Block) {
        let segment = self.segments.len() - 1;
        for label in block.mentions {
            if self.definitions.get(&label).is_none() {
                self.waiting.entry(label).or_default().push(segment);
            }
        }
        self.blocks.push(block.html.into());
    }

    /// Renders the segments again that refer to one of these labels, and returns the position of the first change.
    fn render_waiting(&mut self, text: &str, redefined: &[Label]) -> Option<Position> {
        let segments: BTreeSet<usize> =
            redefined.iter().filter_map(|label| self.waiting.get(label)).flatten().copied().collect();
        for label in redefined {
            if self.definitions.get(label).is_some() {
                self.waiting.remove(label);
            }
        }
        if segments.is_empty() {
            return None;
        }
        let everything = self.definitions.with(&self.provisional);
        let mut first = None;
        for segment in segments.into_iter().map(|index| &self.segments[index]) {
            let rendered = Renderer::default().render(&text[segment.source.clone()], &everything);
            for (block, new) in (segment.first_block..).zip(rendered.blocks) {
                let old = &mut self.blocks[block];
                if **old != *new.html {
                    let bytes = common_prefix(old, &new.html);
                    let utf16 = utf16(&new.html[..bytes]);
                    first = first.or(Some(Position { block, bytes, utf16 }));
                    *old = new.html.into();
                }
            }
        }
        first
    }
}

/// Where `source` can be cut so that nothing after a cut changes anything before it, and each part renders alone as it
/// does here. Every rule was once violated by a random text; the property test checks them.
pub(super) fn cuts(source: &str, blocks: &[Block]) -> Vec<usize> {
    let mut cuts = Vec::new();
    for pair in blocks.windows(2) {
        let [above, block] = pair else { continue };
        let line = source[..block.source.start].rfind('\n').map_or(0, |at| at + 1);
        // `2` may become `2. item` and join the list above, so the first line must be complete.
        let complete = source[line..].contains('\n');
        let gap = source.get(above.source.end..line).unwrap_or_default();
        let touches = gap.bytes().all(|byte| byte.is_ascii_whitespace());
        // An indented line may belong to an open block above with less indentation, such as a footnote.
        let indented = source[line..].starts_with("    ") || source[line..block.source.start.max(line)].contains('\t');
        let done = match above.kind {
            // A heading and a rule end with their line; a fence that is followed by something is closed.
            Kind::Line | Kind::Fence => touches,
            Kind::Paragraph | Kind::EndsAtBlankLine => touches && is_blank_line_before(source, line),
            Kind::SpansBlankLines => false,
        };
        if done || complete && !indented && (is_blank_line_before(source, line) || block.kind == Kind::Fence) {
            cuts.push(line);
        }
    }
    cuts.extend(blocks.last().filter(|last| last.kind == Kind::Paragraph).and_then(|last| end_of(source, last)));
    cuts
}

/// The start of the line after the blank line that ends this last paragraph.
fn end_of(source: &str, paragraph: &Block) -> Option<usize> {
    let after = source.get(paragraph.source.end..)?;
    let line = paragraph.source.end + after.rfind('\n')? + 1;
    let is_ended = after.bytes().all(|byte| byte.is_ascii_whitespace()) && is_blank_line_before(source, line);
    is_ended.then_some(line)
}

fn is_blank_line_before(source: &str, line: usize) -> bool {
    let Some(above) = source[..line].strip_suffix('\n') else { return false };
    let start = above.rfind('\n').map_or(0, |at| at + 1);
    above[start..].bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}
