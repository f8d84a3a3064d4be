//! The blocks that may still change.

use std::sync::Arc;

use super::changes::Position;
use super::fence::OpenFence;
use super::html::{OpenHtml, common_prefix, utf16};
use super::open::{OpenBlock, Rest};
use super::plain::PlainEnd;
use crate::markdown::{Block, Definitions, Rendered, Renderer};

/// Everything after the settled blocks.
#[derive(Debug, Default)]
pub(super) struct Tail {
    blocks: Vec<OpenHtml>,
    renderer: Renderer,
    open: Open,
    plain: Option<PlainEnd>,
}

/// How the tail can continue without being parsed from its start.
#[derive(Debug, Default)]
enum Open {
    #[default]
    Unknown,
    Fence(OpenFence),
    Block(Box<OpenBlock>),
}

/// The open block has grown by the added text.
pub(super) struct Grown {
    pub(super) changed: Option<Position>,
}

impl Tail {
    pub(super) fn blocks(&self) -> impl ExactSizeIterator<Item = &str> {
        self.blocks.iter().map(OpenHtml::as_str)
    }

    /// Extends the last block to the end of `source`, in which everything from `before` on is new, if the addition is
    /// plain text. Returns where it changed, if it did.
    pub(super) fn grow_plain(&mut self, source: &str, before: usize) -> Option<Grown> {
        let plain = self.plain.as_mut()?;
        let (block, html) = self.blocks.iter_mut().enumerate().next_back()?;
        let changed = plain.grow(source, before, html)?;
        Some(Grown { changed: changed.map(|position| Position { block, ..position }) })
    }

    /// Extends the open block to the end of `source`, if it can, and returns where it changed, if it did.
    pub(super) fn grow(&mut self, source: &str, outside: &Definitions) -> Option<Grown> {
        self.plain = None;
        let changed = match &mut self.open {
            Open::Unknown => return None,
            Open::Fence(fence) => {
                let [html] = &mut self.blocks[..] else { return None };
                let end = fence.grow(source, &mut self.renderer, html)?;
                self.plain = end.map(|end| PlainEnd::new(source, html, end));
                html.change()
            }
            Open::Block(open) => {
                let html = self.blocks.first_mut()?;
                let Rest { end, others, .. } = open.grow(source, outside, html)?;
                let changed = html.change().or_else(|| {
                    let others = first_difference(&self.blocks[1..], others.iter().map(OpenHtml::as_str))?;
                    Some(Position { block: 1 + others.block, ..others })
                });
                self.blocks.truncate(1);
                self.blocks.extend(others);
                self.plain = end.zip(self.blocks.last()).map(|(end, html)| PlainEnd::new(source, html, end));
                changed
            }
        };
        Some(Grown { changed })
    }

    /// From where on the next chunk has the source parsed again, unless it is nothing but words.
    pub(super) fn parsed_from(&self, source: &str) -> usize {
        match &self.open {
            Open::Unknown => 0,
            Open::Fence(_) => source.len(),
            Open::Block(open) => open.parsed_from(),
        }
    }

    /// Renders the tail's whole source.
    pub(super) fn render(&mut self, source: &str, outside: &Definitions) -> Rendered {
        self.renderer.render(source, outside)
    }

    /// Replaces the blocks: some were settled, the `open` ones are now the tail and end `source`. Returns where they
    /// differ from the old ones. Without `outside`, definitions elsewhere in the tail matter, and no part of it can be
    /// rendered alone.
    pub(super) fn replace(
        &mut self,
        left: &[Arc<str>],
        open: Vec<Block>,
        source: &str,
        outside: Option<&Definitions>,
    ) -> Option<Position> {
        let new = left.iter().map(|html| &**html).chain(open.iter().map(|block| block.html.as_str()));
        let changed = first_difference(&self.blocks, new);
        (self.open, self.plain) = (Open::Unknown, None);
        self.blocks.clear();
        if !left.is_empty() {
            // The cached code blocks are no longer the first ones.
            self.renderer = Renderer::default();
        }
        let alone = left.is_empty() && open.len() == 1;
        for mut block in open {
            let mut html = OpenHtml::new(std::mem::take(&mut block.html));
            if alone {
                self.open = take_over(source, &block, &self.renderer, outside, &mut html);
            }
            self.plain = block.end.map(|end| PlainEnd::new(source, &html, end));
            self.blocks.push(html);
        }
        changed
    }

    /// The blocks do not show the whole tail, so added text cannot continue from their end.
    pub(super) fn close(&mut self) {
        (self.open, self.plain) = (Open::Unknown, None);
    }
}

fn take_over(
    source: &str,
    block: &Block,
    renderer: &Renderer,
    outside: Option<&Definitions>,
    html: &mut OpenHtml,
) -> Open {
    if let Some(fence) = OpenFence::take_over(source, block, renderer, html) {
        Open::Fence(fence)
    } else if let Some(open) = outside.and_then(|outside| OpenBlock::take_over(source, block, outside, html)) {
        Open::Block(Box::new(open))
    } else {
        Open::Unknown
    }
}

/// The position where two lists of blocks start to differ.
fn first_difference<'a>(old: &[OpenHtml], new: impl Iterator<Item = &'a str>) -> Option<Position> {
    let mut count = 0;
    for (block, html) in new.enumerate() {
        count += 1;
        let Some(before) = old.get(block).map(OpenHtml::as_str) else { return Some(Position::block(block)) };
        if before != html {
            let bytes = common_prefix(before, html);
            return Some(Position { block, bytes, utf16: utf16(&html[..bytes]) });
        }
    }
    (count < old.len()).then(|| Position::block(count))
}
