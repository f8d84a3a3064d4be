//! A reader as the page is one: it has blocks and applies patches, counting in UTF-16 units.

use std::sync::Arc;

use rendering::{BlockPatch, LiveMarkdown, Mark};

#[derive(Debug, Default)]
pub(crate) struct Reader {
    blocks: Vec<Vec<u16>>,
    pub(crate) mark: Mark,
}

impl Reader {
    /// Catches up, twice: applying a patch again must do no harm. Returns how many bytes that cost.
    pub(crate) fn catch_up(&mut self, live: &LiveMarkdown) -> usize {
        let patch = live.patch_since(self.mark);
        self.apply(&patch);
        self.apply(&patch);
        self.mark = live.mark();
        patch.html.iter().map(String::len).sum()
    }

    fn apply(&mut self, patch: &BlockPatch) {
        let kept = self.blocks.get(patch.from).map(|block| block[..patch.keep].to_vec()).unwrap_or_default();
        assert_eq!(kept.len(), patch.keep, "a patch keeps only what is there");
        self.blocks.truncate(patch.from);
        assert_eq!(self.blocks.len(), patch.from, "a patch keeps only what is there");
        for (index, html) in patch.html.iter().enumerate() {
            let mut block = if index == 0 { kept.clone() } else { Vec::new() };
            block.extend(html.encode_utf16());
            self.blocks.push(block);
        }
    }

    pub(crate) fn assert_shows(&self, blocks: &[Arc<str>], after: &str) {
        let shown: Vec<String> = self.blocks.iter().map(|block| String::from_utf16_lossy(block)).collect();
        let expected: Vec<&str> = blocks.iter().map(|block| &**block).collect();
        assert_eq!(shown, expected, "after {after:?}");
    }
}
