//! Blocks that are done, and what can still reach them: definitions.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::changes::Position;
use super::html::{common_prefix, utf16};
use crate::markdown::{Block, Definitions, Found, Kind, Label, Rendered, Renderer};

/// The part of a text that is done.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// How much of the text this is.
    pub(super) bytes: usize,
    pub(super) blocks: Vec<Arc<str>>,
    /// What this part defines.
    pub(super) definitions: Definitions,
    /// What the rest of the text defines for now; it may still be taken back.
    provisional: Definitions,
    segments: Vec<Segment>,
    /// Segments that mention a label nothing settled defines.
    waiting: HashMap<Label, Vec<usize>>,
}

/// A stretch of source that renders the same alone as in its place.
#[derive(Debug)]
struct Segment {
    source: Range<usize>,
    first_block: usize,
}

/// What came of one more look at the rest of a text.
pub(super) struct Absorbed {
    /// From where blocks that were settled before had to be rendered again.
    pub(super) rewound: Option<Position>,
    /// The blocks that are not done.
    pub(super) open: Vec<Block>,
}

impl Settled {
    /// Takes over from `rendered` (the rest of `text`) what is done, and leaves the others.
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

    /// Whether the rest of the text defines nothing but, at most, the one footnote it consists of.
    pub(super) fn rest_defines_nothing(&self, rest: &str) -> bool {
        self.provisional.is_empty() || self.provisional.is_one_footnote() && rest.trim_ascii_start().starts_with("[^")
    }

    /// Takes note of the definitions in the rest of the text, of which the first `end` bytes are done now. Returns the
    /// labels that mean something else than before.
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
        // What is left was taken back.
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

    /// Renders the segments again that mention one of these labels, and says where the first of them changed.
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
/// does here. Every rule here was broken once by a random text; the property test keeps them honest.
pub(super) fn cuts(source: &str, blocks: &[Block]) -> Vec<usize> {
    let mut cuts = Vec::new();
    for pair in blocks.windows(2) {
        let [above, block] = pair else { continue };
        let line = source[..block.source.start].rfind('\n').map_or(0, |at| at + 1);
        // `2` may become `2. item` and join the list above, so the first line must be complete.
        let complete = source[line..].contains('\n');
        let gap = source.get(above.source.end..line).unwrap_or_default();
        let touches = gap.bytes().all(|byte| byte.is_ascii_whitespace());
        // An indented line may belong to something open above that gave up its indentation, such as a footnote.
        let indented = source[line..].starts_with("    ") || source[line..block.source.start.max(line)].contains('\t');
        let done = match above.kind {
            // A heading and a rule end with their line, a fence that something follows is closed.
            Kind::Line | Kind::Fence => touches,
            Kind::Paragraph | Kind::Ends => touches && is_blank_line_before(source, line),
            Kind::GoesOn => false,
        };
        if done || complete && !indented && (is_blank_line_before(source, line) || block.kind == Kind::Fence) {
            cuts.push(line);
        }
    }
    cuts.extend(blocks.last().filter(|last| last.kind == Kind::Paragraph).and_then(|last| end_of(source, last)));
    cuts
}

/// Where the line after the blank one begins that ends this last paragraph.
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
