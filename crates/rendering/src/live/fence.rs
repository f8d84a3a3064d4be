//! An open code fence at the end of a text: lines are highlighted once, when they are complete.

use super::html::OpenHtml;
use crate::code;
use crate::escape;
use crate::markdown::{
    Block, Continuation, Kind, OpenEnd, Renderer, is_code_for_sure, only_fence, without_partial_fence,
};
use crate::sanitize::sanitize;

/// The state needed to continue without parsing from the start.
#[derive(Debug)]
pub(super) struct OpenFence {
    /// The line with the opening fence. It is put before later lines, so that the parser reads them as code.
    opening: String,
    /// Where in the tail's source the first line starts that is not highlighted yet.
    at: usize,
}

impl OpenFence {
    /// Starts from a fence that is the whole tail, unless it is closed.
    pub(super) fn take_over(source: &str, block: &Block, renderer: &Renderer, html: &mut OpenHtml) -> Option<Self> {
        if block.kind != Kind::Fence {
            return None;
        }
        let line = source[..block.source.start].rfind('\n').map_or(0, |at| at + 1);
        let lines = line + source[line..].find('\n')? + 1;
        let done = renderer.first_code()?;
        if newlines(done.code()) != newlines(&source[lines..]) {
            return None;
        }
        // Everything up to the last complete line will not change.
        let header = html.as_str().find("<pre><code>")? + "<pre><code>".len();
        html.settle(header + done.html().len());
        let at = source.rfind('\n').map_or(lines, |at| at + 1);
        Some(Self { opening: source[line..lines].to_owned(), at })
    }

    /// Continues with the text added to the tail's source. Returns where more text may be appended, or `None` if the
    /// tail is no longer one open fence.
    pub(super) fn grow(
        &mut self,
        source: &str,
        renderer: &mut Renderer,
        html: &mut OpenHtml,
    ) -> Option<Option<OpenEnd>> {
        let added = &source[self.at..];
        let whole = format!("{}{added}", self.opening);
        let code = only_fence(&whole)?;
        if newlines(&code.text) != newlines(added) {
            return None;
        }
        let complete = code.text.rfind('\n').map_or(0, |at| at + 1);
        let lines = renderer.first_code_mut()?.grow(&code.text[..complete]).to_owned();
        let mut rest = String::new();
        escape::text_into(&mut rest, &without_partial_fence(&code.text, code.mark, code.count)[complete..]);
        html.append(&sanitize(lines), &sanitize(rest), code::CLOSE);
        self.at += added.rfind('\n').map_or(0, |at| at + 1);
        let end = OpenEnd { close: code::CLOSE.len(), takes: Continuation::Anything, word: 0 };
        Some(is_code_for_sure(&code.text, code.mark).then_some(end))
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}
