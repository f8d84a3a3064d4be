//! One pass over a source: parse, write, sanitize, block by block.

use std::cell::RefCell;
use std::ops::Range;

use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, Options, Parser, Tag};
use unicase::UniCase;

use super::definitions::{self, Definition, Definitions, Found, Label};
use super::writer::{OpenEnd, Writer, Written, fence_marks};
use crate::code::{CachedCode, CodeCache};
use crate::sanitize::{is_clean, sanitized};

/// The kind of a top-level block, as far as it matters for its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Paragraph,
    /// A heading or a rule: nothing that follows can change it.
    Line,
    Fence,
    /// Something that a blank line ends: a table, a quote, raw HTML.
    EndsAtBlankLine,
    /// Something that may continue after a blank line: a list, a footnote, indented code.
    SpansBlankLines,
}

/// One top-level block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) source: Range<usize>,
    pub(crate) html: String,
    /// The sanitizer left the written HTML unchanged.
    pub(crate) clean: bool,
    /// Where in the HTML further text is inserted, if the source ends where text can follow without changing anything
    /// else.
    pub(crate) end: Option<OpenEnd>,
    /// The labels it refers to, defined or not.
    pub(crate) mentions: Vec<Label>,
}

/// Observes the events of the first block of a source, each before it is written.
pub(crate) trait Watch {
    /// `html` is the block so far, without a text that is still collected. The observer may return the offset of a word
    /// in this text: from then on `word` is the start of that word in the HTML.
    fn event(&mut self, event: &Event<'_>, range: Range<usize>, html: &str, word: usize) -> Option<usize>;

    /// The code block that just ended has been written, its complete lines up to this position.
    fn code_written(&mut self, complete_lines: usize);
}

/// The result of rendering one source.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pub(crate) blocks: Vec<Block>,
    /// The first definition of each label, in no order.
    pub(crate) definitions: Vec<Found>,
}

impl Rendered {
    /// Whether a link definition extends beyond this position.
    pub(crate) fn has_link_definition_after(&self, place: usize) -> bool {
        let is_it = |found: &Found| matches!(found.definition, Definition::Link { .. }) && found.end > place;
        self.definitions.iter().any(is_it)
    }
}

/// Renders successive versions of one source: code that was highlighted last time is not highlighted again.
#[derive(Debug, Default)]
pub(crate) struct Renderer {
    code: CodeCache,
}

pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

impl Renderer {
    /// The first code block of the last source.
    pub(crate) fn first_code(&self) -> Option<&CachedCode> {
        self.code.first()
    }

    pub(crate) fn first_code_mut(&mut self) -> Option<&mut CachedCode> {
        self.code.first_mut()
    }

    /// Forgets all code except the state after the last complete line of the last block: the next source starts after
    /// that line.
    pub(crate) fn continue_last_code(&mut self) {
        self.code.continue_last();
    }

    /// Renders `source`, with the definitions of `outside`, which take precedence.
    pub(crate) fn render(&mut self, source: &str, outside: &Definitions) -> Rendered {
        self.render_watched(source, outside, None)
    }

    pub(crate) fn render_watched(
        &mut self,
        source: &str,
        outside: &Definitions,
        mut watch: Option<&mut dyn Watch>,
    ) -> Rendered {
        self.code.restart();
        let prelude = footnotes_prelude(source, outside);
        let whole: CowStr<'_> = if prelude.is_empty() { source.into() } else { format!("{prelude}{source}").into() };
        let skipped = prelude.len();

        let mentions = RefCell::new(Vec::new());
        let resolve = |link: BrokenLink<'_>| {
            let found =
                outside.link(&link.reference).map(|(url, title)| (url.to_owned().into(), title.to_owned().into()));
            mentions.borrow_mut().push(UniCase::new(link.reference.into_string()));
            found
        };
        let parser = Parser::new_with_broken_link_callback(&whole, options(), Some(resolve));
        let mut rendered = Rendered::default();
        for (label, link) in parser.reference_definitions().iter() {
            let title = link.title.as_deref().unwrap_or_default().to_owned();
            let definition = Definition::Link { url: link.dest.to_string(), title };
            let Some(at) = link.span.start.checked_sub(skipped) else { continue };
            let end = link.span.end - skipped;
            rendered.definitions.push(Found { label: UniCase::new(label.to_owned()), definition, at, end });
        }

        let mut depth = 0;
        let mut current: Option<(Kind, Range<usize>, Writer<'_>)> = None;
        for (event, range) in parser.into_offset_iter() {
            // The blocks of the prelude are not part of the text.
            let Some(start) = range.start.checked_sub(skipped) else { continue };
            let range = start..range.end - skipped;
            match &event {
                Event::Start(Tag::FootnoteDefinition(label)) => {
                    let label = definitions::footnote_label(label);
                    rendered.definitions.push(Found { label, definition: Definition::Footnote, at: start, end: start });
                }
                Event::Start(Tag::Link { id, .. } | Tag::Image { id, .. }) if !id.is_empty() => {
                    mentions.borrow_mut().push(UniCase::new(id.to_string()));
                }
                _ => {}
            }
            let (starts, ends) = (matches!(event, Event::Start(_)), matches!(event, Event::End(_)));
            if depth == 0 {
                current = Some((kind(&event), range.clone(), Writer::new(source, &range, outside, &mut self.code)));
            }
            if let Some((_, _, writer)) = &mut current {
                match &mut watch {
                    Some(watch) if rendered.blocks.is_empty() => writer.watched_event(event, range, &mut **watch),
                    _ => writer.event(event, range),
                }
            }
            depth += usize::from(starts);
            depth -= usize::from(ends);
            if depth == 0
                && let Some((kind, source_range, writer)) = current.take()
            {
                let mut mentions = mentions.take();
                let written = &source[source_range.clone()];
                mentions.extend(definitions::footnote_mentions(written).map(definitions::footnote_label));
                let Written { html, end } = writer.finish();
                let clean = is_clean(&html);
                let (html, end) = if clean { (html, end) } else { (sanitized(&html), None) };
                rendered.blocks.push(Block { kind, source: source_range, html, clean, end, mentions });
            }
        }
        rendered
    }
}

fn kind(event: &Event<'_>) -> Kind {
    match event {
        Event::Start(Tag::Paragraph) => Kind::Paragraph,
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Kind::Fence,
        // A heading with an underline is a paragraph until the underline is complete, but then it is final as well.
        Event::Start(Tag::Heading { .. }) | Event::Rule => Kind::Line,
        Event::Start(Tag::Table(_) | Tag::BlockQuote(_) | Tag::HtmlBlock) => Kind::EndsAtBlankLine,
        _ => Kind::SpansBlankLines,
    }
}

/// Placeholders for the footnotes of `outside` that `source` refers to: the parser knows only those in its input.
fn footnotes_prelude(source: &str, outside: &Definitions) -> String {
    let mut prelude = String::new();
    if outside.is_empty() {
        return prelude;
    }
    for mention in definitions::footnote_mentions(source) {
        if outside.has_footnote(&definitions::footnote_label(mention)) {
            prelude.push_str(&format!("[{mention}]: x\n"));
        }
    }
    if !prelude.is_empty() {
        // Ends the last of them, whatever the source starts with.
        prelude.push_str("\n***\n\n");
    }
    prelude
}

/// A code block as the parser sees it.
pub(crate) struct FencedCode {
    pub(crate) text: String,
    /// The fence's character and how many.
    pub(crate) mark: u8,
    pub(crate) count: usize,
}

/// The code of a source that is one fence and nothing else.
pub(crate) fn only_fence(source: &str) -> Option<FencedCode> {
    let mut text = String::new();
    let mut depth = 0;
    for event in Parser::new_ext(source, options()) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if depth == 0 => depth = 1,
            Event::Text(line) if depth == 1 => text.push_str(&line),
            Event::End(_) if depth == 1 => depth = 2,
            _ => return None,
        }
    }
    let (mark, count) = fence_marks(source);
    (depth == 2).then_some(FencedCode { text, mark, count })
}
