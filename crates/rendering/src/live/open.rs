//! An open block at the end of a text, of which only the end is parsed again.
//!
//! The parser restarts in the middle, behind a [`Guard`] that makes it interpret what follows correctly. If the guard
//! itself then renders differently, the block has changed its type (one blank line makes a list loose, with all its
//! items; a line of `=` turns a paragraph into a heading), and it is rendered again as a whole.

use super::guard::Guard;
use super::html::OpenHtml;
use super::paragraph::ANY_MARK;
use super::restart::{Restart, Restarts, Search};
use super::settle::cuts;
use crate::markdown::{Block, Definitions, Kind, OpenEnd, Renderer, Watch};

/// A shorter block is rendered again as a whole: most paragraphs end before a restart would pay off.
const WHOLE_BYTES: usize = if cfg!(debug_assertions) { 4 } else { 320 };

/// The search for a later restart position has a cost, so it runs only every so many bytes. Tests search more often and
/// earlier, to check more positions.
const STEP_BYTES: usize = if cfg!(debug_assertions) { 4 } else { 96 };

#[derive(Debug)]
pub(super) struct OpenBlock {
    kind: Kind,
    start: Start,
    /// The last item or inner block, to restart from when the text of its paragraph becomes something else: `- one`
    /// and, in the next line, `  -` is a heading until the second item has text.
    fallback: Option<Restart>,
    /// The length at which the next search for a later position pays off.
    next_look: usize,
    /// A restart position gave a different result than the whole block: none is used any more.
    is_broken: bool,
    /// Caches the highlighted code in the part that is parsed again.
    renderer: Renderer,
    /// The parsed source: the guard and the end of the block's source.
    parsed: String,
}

/// Where the parser restarts; everything before is settled.
#[derive(Debug, Default)]
struct Start {
    at: usize,
    /// The same position in the block's HTML.
    html: usize,
    guard: Guard,
}

/// The rendered end of a text.
pub(super) struct Rest {
    /// The open block from the guard on, and the length of the guard's part.
    html: String,
    guard: usize,
    /// Where more text may be appended, at the end of the last block.
    pub(super) end: Option<OpenEnd>,
    /// Further blocks, which may still change.
    pub(super) others: Vec<OpenHtml>,
    /// Later restart positions.
    restarts: Restarts,
}

/// Why the rendered end of a text cannot be used.
enum RestartError {
    /// The block has ended: it can be settled.
    Ended,
    /// The guard rendered differently, so the block is not what it was.
    Changed,
}

impl Rest {
    fn html(&self) -> &str {
        &self.html[self.guard..]
    }
}

impl OpenBlock {
    /// Starts from a block that is the whole tail, once it is long enough.
    pub(super) fn take_over(source: &str, block: &Block, outside: &Definitions, html: &mut OpenHtml) -> Option<Self> {
        if source.len() < WHOLE_BYTES || matches!(block.kind, Kind::Fence | Kind::Line) {
            return None;
        }
        let (start, mut renderer) = (Start::default(), Renderer::default());
        let mut search = Search::new(source, 0, &start.guard);
        let rendered = renderer.render_watched(source, outside, Some(&mut search));
        if !rendered.blocks.first()?.clean {
            return None;
        }
        let found = search.found();
        let mut open = Self {
            kind: block.kind,
            start,
            fallback: None,
            next_look: 0,
            is_broken: false,
            renderer,
            parsed: String::new(),
        };
        open.advance(found, source, outside, html).then_some(open)
    }

    /// Continues to the end of the tail's source. `None` if it is no longer the same block, or may not be.
    pub(super) fn grow(&mut self, source: &str, outside: &Definitions, html: &mut OpenHtml) -> Option<Rest> {
        if self.is_broken {
            return None;
        }
        let mut rest = match self.render_rest(source, outside) {
            Ok(rest) => rest,
            Err(RestartError::Ended) => return None,
            Err(RestartError::Changed) => {
                self.fall_back(html)?;
                self.render_rest(source, outside).ok()?
            }
        };
        html.append("", rest.html(), "");
        let found = std::mem::take(&mut rest.restarts);
        self.advance(found, source, outside, html);
        Some(rest)
    }

    /// From where on the source is parsed again.
    pub(super) fn parsed_from(&self) -> usize {
        if self.is_broken { 0 } else { self.start.at }
    }

    /// Goes back to the start of the last item or inner block.
    fn fall_back(&mut self, html: &mut OpenHtml) -> Option<()> {
        let Restart { at, html: settled, guard, .. } = self.fallback.take()?;
        self.start = Start { at, html: settled, guard };
        self.renderer = Renderer::default();
        html.unsettle(settled);
        Some(())
    }

    /// Moves to a later restart position, if one was found.
    fn advance(&mut self, found: Restarts, source: &str, outside: &Definitions, html: &mut OpenHtml) -> bool {
        let may_start =
            |place: &Restart| may_continue(&place.guard, &source[place.at..]) && !may_become_a_rule(source, place.at);
        let Some(last) = found.last.filter(may_start) else { return false };
        let block = found.block.filter(|block| !may_become_a_rule(source, block.at));
        // Behind something that any mark may close, the last position before it is still usable.
        let before = Some(&self.start).filter(|before| {
            last.guard.closers == ANY_MARK && before.guard.in_paragraph && before.guard.closers != ANY_MARK
        });
        let before = before.map(|Start { at, html, guard }| Restart {
            at: *at,
            html: *html,
            guard: guard.clone(),
            in_code: false,
        });
        self.fallback = before.or(block).or(self.fallback.take());
        if last.in_code {
            self.renderer.continue_last_code();
        } else {
            self.renderer = Renderer::default();
        }
        self.next_look = source.len() + STEP_BYTES;
        self.start = Start { at: last.at, html: last.html, guard: last.guard };
        // A restart position is an assumption. It is checked before anything depends on it.
        let shown = html.as_str().get(self.start.html..);
        if !self.render_rest(source, outside).is_ok_and(|rest| Some(rest.html()) == shown) {
            self.is_broken = true;
            return false;
        }
        html.settle(self.start.html);
        true
    }

    fn render_rest(&mut self, source: &str, outside: &Definitions) -> Result<Rest, RestartError> {
        let Start { at, html: settled, guard } = &self.start;
        let rest = &source[*at..];
        if !may_continue(guard, rest) {
            return Err(RestartError::Changed);
        }
        let from = guard.source.len();
        self.parsed.clear();
        self.parsed.push_str(&guard.source);
        self.parsed.push_str(rest);
        let mut search = Search::new(&self.parsed, from, guard);
        let look = source.len() >= self.next_look;
        let watch: Option<&mut dyn Watch> = if look { Some(&mut search) } else { None };
        let rendered = self.renderer.render_watched(&self.parsed, outside, watch);
        // The guard of a footnote defines it again.
        if rendered.definitions.iter().any(|found| found.at >= from) {
            return Err(RestartError::Changed);
        }
        let cut = rendered.blocks.len() > 1 && !cuts(&self.parsed, &rendered.blocks).is_empty();
        let mut blocks = rendered.blocks.into_iter();
        let first = blocks.next().filter(|first| first.kind == self.kind && first.html.starts_with(&guard.html));
        let first = first.ok_or(RestartError::Changed)?;
        if cut {
            return Err(RestartError::Ended);
        }
        let mut restarts = Restarts::default();
        if look && first.clean {
            restarts = search.found();
            for restart in restarts.iter_mut() {
                restart.at = at + restart.at - from;
                restart.html = settled + restart.html - guard.html.len();
            }
        }
        let mut end = first.end;
        let others = blocks
            .map(|block| {
                end = block.end;
                OpenHtml::new(block.html)
            })
            .collect();
        Ok(Rest { guard: guard.html.len(), html: first.html, end, others, restarts })
    }
}

/// Whether `rest` is parsed behind the guard as it would be in its original position.
fn may_continue(guard: &Guard, rest: &str) -> bool {
    let closes = !guard.closers.is_empty() && rest.contains(|next| guard.closers.contains(next));
    !(closes || guard.in_first_line && may_be_a_table(rest))
}

/// Whether the line at `at` may still turn into a rule, which has no items: `-     -` is code in an item until a third
/// `-`.
pub(super) fn may_become_a_rule(source: &str, at: usize) -> bool {
    let line = &source[source[..at].rfind('\n').map_or(0, |end| end + 1)..];
    if line.contains('\n') {
        return false;
    }
    let mut inner = line;
    loop {
        let trimmed = inner.trim_start_matches([' ', '\t', '>']);
        let number = trimmed.trim_start_matches(|next: char| next.is_ascii_digit());
        let behind = if number.len() < trimmed.len() { number.strip_prefix(['.', ')']) } else { None };
        inner = behind.unwrap_or(trimmed);
        if behind.is_none() {
            break;
        }
    }
    inner.bytes().all(|byte| b" \t-*_+".contains(&byte))
}

/// Whether the second line may turn the first into the head of a table, which the guard would hide.
fn may_be_a_table(source: &str) -> bool {
    let Some((_, below)) = source.split_once('\n') else { return false };
    let line = below.split('\n').next().unwrap_or_default();
    line.contains('|') && line.bytes().all(|byte| b"-:| \t>".contains(&byte))
}
