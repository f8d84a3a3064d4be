//! The blocks that may still change.

use std::sync::Arc;

use super::changes::Position;
use crate::markdown::{Block, Definitions, Rendered, Renderer};

/// Everything after the settled blocks.
#[derive(Debug, Default)]
pub(super) struct Tail {
    blocks: Vec<String>,
    renderer: Renderer,
}

impl Tail {
    pub(super) fn blocks(&self) -> &[String] {
        &self.blocks
    }

    /// Lets the open block grow to the end of `source`, if it is one that can. Says what changed, if so.
    pub(super) fn grow_open(&mut self, _source: &str) -> Option<Option<Position>> {
        None
    }

    pub(super) fn render(&mut self, source: &str, outside: &Definitions) -> Rendered {
        self.renderer.render(source, outside)
    }

    /// Takes the new blocks: some just left for good, the `open` ones are the tail from now on. Says where they begin
    /// to differ from the old ones.
    pub(super) fn replace(&mut self, left: &[Arc<str>], open: Vec<Block>) -> Option<Position> {
        let new = left.iter().map(|html| &**html).chain(open.iter().map(|block| block.html.as_str()));
        let changed = first_difference(&self.blocks, new);
        if !left.is_empty() {
            self.renderer = Renderer::default();
        }
        self.blocks = open.into_iter().map(|block| block.html).collect();
        changed
    }
}

/// Where two lists of blocks begin to differ.
fn first_difference<'a>(old: &[String], new: impl Iterator<Item = &'a str>) -> Option<Position> {
    let mut count = 0;
    for (block, html) in new.enumerate() {
        count += 1;
        let Some(before) = old.get(block) else { return Some(Position::block(block)) };
        if before != html {
            let bytes = common_prefix(before, html);
            let utf16 = html[..bytes].encode_utf16().count();
            return Some(Position { block, bytes, utf16 });
        }
    }
    (count < old.len()).then(|| Position::block(count))
}

/// How many bytes two texts have in common at their start, in whole characters.
pub(super) fn common_prefix(a: &str, b: &str) -> usize {
    let mut length = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(length) || !b.is_char_boundary(length) {
        length -= 1;
    }
    length
}
