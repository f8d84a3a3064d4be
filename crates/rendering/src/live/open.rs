//! An open block at the end of a text, of which only the end is parsed again.
//!
//! The parser is started again in the middle, behind a [`Guard`] that makes it take what follows for what it is. If the
//! guard itself then looks different, the block is no longer what it was (a list becomes loose by one blank line, and all
//! its items with it; a line of `=` makes a heading of a paragraph), and is rendered again as a whole.

use super::guard::Guard;
use super::html::OpenHtml;
use super::restart::{Restart, Restarts, last_restarts};
use super::settle::cuts;
use crate::markdown::{Block, Definitions, Kind, Renderer};

/// Looking for a later place to start costs about as much as parsing, so it is done every so many bytes. Tests look more
/// often: every place that is found is a claim.
const STEP_BYTES: usize = if cfg!(debug_assertions) { 4 } else { 64 };

#[derive(Debug)]
pub(super) struct OpenBlock {
    kind: Kind,
    start: Start,
    /// The last item or inner block, to start from when the words of its paragraph turn into something else: `- one`
    /// and, in the next line, `  -` is a heading until the second item has a word.
    fallback: Option<Restart>,
    /// When it is worth looking for a later place.
    next_look: usize,
    /// Remembers the code in what is parsed again.
    renderer: Renderer,
}

/// Where the parser starts again; everything before is settled.
#[derive(Debug)]
struct Start {
    at: usize,
    guard: Guard,
    guard_html: String,
}

/// What the parser made of the end of a text.
pub(super) struct Rest {
    /// The end of the open block, with its closing tags.
    html: String,
    /// How much of the last block closes what is open, if words may follow.
    pub(super) close: Option<usize>,
    /// Further blocks, of which it is not known yet whether they stay.
    pub(super) others: Vec<OpenHtml>,
}

impl OpenBlock {
    /// Takes over a block that is the whole tail, once it is long enough to be worth it.
    pub(super) fn take_over(source: &str, block: &Block, outside: &Definitions, html: &mut OpenHtml) -> Option<Self> {
        if source.len() < STEP_BYTES || matches!(block.kind, Kind::Fence | Kind::Line) {
            return None;
        }
        let Restarts { last, block: fallback } = last_restarts(source, 0, &Guard::default());
        let start = Start::new(last?, html)?;
        let next_look = source.len() + STEP_BYTES;
        let mut open = Self { kind: block.kind, start, fallback, next_look, renderer: Renderer::default() };
        let rest = open.render_rest(source, outside)?;
        open.settle(html, &rest).then_some(open)
    }

    /// Goes on to the end of the tail's source, of which everything from `before` on is new. `None` if it is no longer
    /// the same block, or may not be.
    pub(super) fn grow(
        &mut self,
        source: &str,
        before: usize,
        outside: &Definitions,
        html: &mut OpenHtml,
    ) -> Option<Rest> {
        let rest = match self.render_rest(source, outside) {
            Some(rest) => rest,
            None => {
                self.fall_back(&source[..before], outside, html)?;
                self.render_rest(source, outside)?
            }
        };
        html.go_on("", &rest.html, "");
        if source.len() >= self.next_look {
            self.next_look = source.len() + STEP_BYTES;
            self.advance(source, outside, html);
        }
        Some(rest)
    }

    /// Goes back to the start of the last item or inner block of `source`, which `html` shows.
    fn fall_back(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<()> {
        self.start = Start::new(self.fallback.take()?, html)?;
        let rest = self.render_rest(source, outside)?;
        html.unsettle(html.as_str().strip_suffix(rest.html.as_str())?.len());
        Some(())
    }

    /// Moves on to a later place, if there is one.
    fn advance(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<()> {
        let guard = &self.start.guard;
        let (whole, from) = (format!("{}{}", guard.source, &source[self.start.at..]), guard.source.len());
        let Restarts { last, block } = last_restarts(&whole, from, guard);
        let in_source = |restart: Restart| Restart { at: self.start.at + restart.at - from, ..restart };
        let (last, block) = (last.map(in_source), block.map(in_source));
        let start = Start::new(last?, html)?;
        let before = std::mem::replace(&mut self.start, start);
        if self.render_rest(source, outside).is_some_and(|rest| self.settle(html, &rest)) {
            self.fallback = block.or(self.fallback.take());
        } else {
            self.start = before;
        }
        Some(())
    }

    /// Settles everything but `rest`, if that is how the block ends.
    fn settle(&self, html: &mut OpenHtml, rest: &Rest) -> bool {
        let settled = html.as_str().strip_suffix(rest.html.as_str()).map(str::len);
        let later = settled.filter(|settled| *settled >= html.settled().len());
        if let Some(settled) = later {
            html.settle(settled);
        }
        later.is_some()
    }

    fn render_rest(&mut self, source: &str, outside: &Definitions) -> Option<Rest> {
        let Start { at, guard, guard_html } = &self.start;
        let rest = &source[*at..];
        if guard.in_first_line && may_be_a_table(rest) || rest.contains(|next| guard.closers.contains(next)) {
            return None;
        }
        let whole = format!("{}{rest}", guard.source);
        let rendered = self.renderer.render(&whole, outside);
        // A footnote's guard defines it again.
        if rendered.definitions.iter().any(|found| found.at >= guard.source.len()) {
            return None;
        }
        let (first, others) = rendered.blocks.split_first()?;
        if first.kind != self.kind || !others.is_empty() && !cuts(&whole, &rendered.blocks).is_empty() {
            return None;
        }
        let html = first.html.strip_prefix(guard_html)?.to_owned();
        let close = others.last().unwrap_or(first).close;
        let others = others.iter().map(|block| OpenHtml::new(block.html.clone())).collect();
        Some(Rest { html, close, others })
    }
}

impl Start {
    fn new(restart: Restart, html: &OpenHtml) -> Option<Self> {
        const BODY: &str = "<tbody>";
        let Restart { at, guard } = restart;
        // The guard of a table is its own head.
        let head = || html.as_str().find(BODY).map(|at| html.as_str()[..at + BODY.len()].to_owned());
        let guard_html = guard.html.clone().or_else(head)?;
        Some(Self { at, guard, guard_html })
    }
}

/// Whether the second line may make a table of the first, which the guard would hide.
fn may_be_a_table(source: &str) -> bool {
    let Some((_, below)) = source.split_once('\n') else { return false };
    let line = below.split('\n').next().unwrap_or_default();
    line.contains('|') && line.bytes().all(|byte| b"-:| \t>".contains(&byte))
}
