//! Events of one block → HTML.
//!
//! All text of an agent goes through [`escape`]; tags and attribute names come from this file only. Raw HTML is treated
//! as text. The output is exactly what the sanitizer would write, so it passes unchanged.

use std::ops::Range;

use pulldown_cmark::{Alignment, BlockQuoteKind, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Tag, TagEnd};

use super::definitions::Definitions;
use super::links;
use super::render::Watch;
use crate::code::{self, CodeCache};
use crate::escape;

/// Deeper nesting is shown flat. Browsers stop at 512; nobody reads at 40.
const DEPTH_MAX: usize = 40;

/// One block as HTML.
pub(crate) struct Written {
    pub(crate) html: String,
    pub(crate) end: Option<OpenEnd>,
}

/// The source ends where text can follow without changing anything else: it is inserted before the last `close` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenEnd {
    pub(crate) close: usize,
    pub(crate) takes: Continuation,
    /// The length of the word at the end, as far as it is text.
    pub(crate) word: usize,
}

/// What may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// Text of a paragraph.
    Text,
    /// Anything except a new line: code, raw HTML.
    Anything,
}

pub(crate) struct Writer<'a> {
    source: &'a str,
    outside: &'a Definitions,
    code: &'a mut CodeCache,
    html: String,
    /// The closing tags of open elements; empty for elements that are shown flat.
    open: Vec<&'static str>,
    /// Adjacent texts, so that an address the parser split is seen as a whole.
    text: String,
    /// Inside a link nothing else may become one.
    links: usize,
    fence: Option<Fence>,
    /// While an image's alternative text is collected.
    image: Option<Image>,
    alignments: Vec<Alignment>,
    column: usize,
    head: bool,
    inline: Inline,
    /// A word of the collected text whose position in the HTML was requested, and the position of the last such word.
    marked: Option<usize>,
    marked_html: usize,
    /// The length of the last word, if only text follows its start.
    last_word: usize,
    /// Where the complete lines of the last code end, in the HTML.
    code_lines_end: usize,
    /// Where in the HTML anything may follow, if the source ends inside code or raw HTML.
    verbatim_end: Option<usize>,
}

/// The position in the source of the inline content that was written last.
#[derive(Clone, Copy, Default)]
struct Inline {
    /// The start of its leaf block, and of its last line.
    leaf: Option<usize>,
    line: Option<usize>,
    end: usize,
    /// Where it ends in the HTML.
    html_end: usize,
    /// Its block is closed: further inline content, in a tight item, belongs to another block.
    closed: bool,
}

impl Inline {
    fn begin(&mut self, start: usize) {
        if std::mem::take(&mut self.closed) {
            (self.leaf, self.line) = (None, None);
        }
        self.leaf.get_or_insert(start);
        self.line.get_or_insert(start);
    }

    fn extend(&mut self, range: Range<usize>) {
        self.begin(range.start);
        self.end = range.end;
    }
}

/// How an event relates to the inline content around it.
enum Part {
    Inline,
    /// Inline content that ends later; the end of an image is not tracked.
    Begin,
    Break,
    /// The start of a block, or a block that contains no text itself.
    Block,
    End,
}

impl Part {
    fn of(event: &Event<'_>) -> Self {
        match event {
            Event::SoftBreak | Event::HardBreak => Self::Break,
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. }) => {
                Self::Begin
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link)
            | Event::Code(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_) => Self::Inline,
            // Missing cells of a row are emitted as well, empty.
            Event::Start(Tag::TableCell) => Self::End,
            Event::Start(_) | Event::Rule | Event::Html(_) => Self::Block,
            _ => Self::End,
        }
    }
}

struct Fence {
    info: String,
    text: String,
    /// The character of the fence and how many; none for indented code.
    marks: Option<(u8, usize)>,
}

struct Image {
    url: String,
    title: String,
    alt: String,
    depth: usize,
}

impl<'a> Writer<'a> {
    /// Writes the block that begins with `range`.
    pub(crate) fn new(
        source: &'a str,
        range: &Range<usize>,
        outside: &'a Definitions,
        code: &'a mut CodeCache,
    ) -> Self {
        Self {
            source,
            outside,
            code,
            html: String::with_capacity(2 * range.len() + 64),
            open: Vec::with_capacity(8),
            text: String::with_capacity(64),
            links: 0,
            fence: None,
            image: None,
            alignments: Vec::new(),
            column: 0,
            head: false,
            inline: Inline::default(),
            marked: None,
            marked_html: 0,
            last_word: 0,
            code_lines_end: 0,
            verbatim_end: None,
        }
    }

    pub(crate) fn finish(mut self) -> Written {
        self.flush();
        let words = self.plain_end().map(|end| (end, Continuation::Text));
        let end = words.or(self.verbatim_end.map(|end| (end, Continuation::Anything)));
        let end = end.map(|(end, takes)| OpenEnd { close: self.html.len() - end, takes, word: self.last_word });
        Written { html: self.html, end }
    }

    /// Where in the HTML further text is inserted, if the source ends in a line that it cannot change into something
    /// else.
    fn plain_end(&self) -> Option<usize> {
        let Inline { leaf, line, end, html_end, .. } = self.inline;
        if end != self.source.trim_end_matches(' ').len() {
            return None;
        }
        // A definition, or the title of one above.
        let leaf = self.source.get(leaf?..)?;
        if leaf.starts_with(['[', '<', '\'', '"', '(']) {
            return None;
        }
        // A tag; a number, a rule, an underline, the second line of a table.
        let line = self.source.get(line?..)?;
        let plain = !line.starts_with(['[', '<']) && line.contains(char::is_alphabetic);
        plain.then_some(html_end)
    }

    /// Handles an event; `watch` sees it before it is written.
    pub(crate) fn watched_event(&mut self, event: Event<'_>, range: Range<usize>, watch: &mut dyn Watch) {
        if !matches!(event, Event::Text(_)) {
            self.flush();
        }
        if let Some(word) = watch.event(&event, range.clone(), &self.html, self.marked_html) {
            self.marked = Some(self.text.len() + word);
        }
        let ends_code = matches!(event, Event::End(TagEnd::CodeBlock));
        self.event(event, range);
        if ends_code {
            watch.code_written(self.code_lines_end);
        }
    }

    pub(crate) fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        if self.image.is_some() {
            return self.image_event(event);
        }
        match event {
            Event::Text(text) => match &mut self.fence {
                Some(fence) => fence.text.push_str(&text),
                None => {
                    self.inline.extend(range);
                    self.text.push_str(&text);
                }
            },
            other => {
                self.flush();
                let part = Part::of(&other);
                let whole = range.clone();
                self.tag_event(other, range);
                match part {
                    Part::Inline => {
                        self.inline.extend(whole);
                        self.inline.html_end = self.html.len();
                        self.last_word = 0;
                    }
                    Part::Begin => self.inline.begin(whole.start),
                    Part::Break => self.inline.line = None,
                    Part::Block => self.inline = Inline::default(),
                    Part::End => self.inline.closed = true,
                }
            }
        }
    }

    fn tag_event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Code(text) => self.code_span(&text),
            Event::Html(text) => escape::text_into(&mut self.html, &text),
            Event::InlineHtml(tag) if matches!(&*tag, "<br>" | "<br/>" | "<br />") => self.html.push_str("<br>"),
            Event::InlineHtml(text) => escape::text_into(&mut self.html, &text),
            Event::SoftBreak | Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::FootnoteReference(label) => {
                self.html.push_str("<sup class=\"note\" data-note=\"");
                escape::attribute_into(&mut self.html, &label);
                self.html.push_str("\">");
                escape::text_into(&mut self.html, &label);
                self.html.push_str("</sup>");
            }
            Event::TaskListMarker(done) => self.task(done),
            // Maths is disabled; texts are collected by the caller.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::Text(text) => {
                escape::text_into(&mut self.html, &text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => self.push("<p>", "</p>"),
            Tag::Heading { level, .. } => {
                let (open, close) = heading(level);
                self.push(open, close);
            }
            Tag::BlockQuote(None) => self.push("<blockquote>", "</blockquote>"),
            Tag::BlockQuote(Some(kind)) => {
                let (class, title) = alert(kind);
                self.push(class, "</blockquote>");
                self.html.push_str("<p class=\"alert-title\">");
                self.html.push_str(title);
                self.html.push_str("</p>");
            }
            Tag::CodeBlock(kind) => self.start_code(kind, range),
            Tag::HtmlBlock => self.push("<p class=\"html\">", "</p>"),
            Tag::List(None) => self.push("<ul>", "</ul>"),
            Tag::List(Some(1)) => self.push("<ol>", "</ol>"),
            Tag::List(Some(first)) => {
                self.push("<ol start=\"", "</ol>");
                if self.is_shown() {
                    self.html.push_str(&first.to_string());
                    self.html.push_str("\">");
                }
            }
            Tag::Item => self.push("<li>", "</li>"),
            Tag::FootnoteDefinition(label) => {
                self.push("<div class=\"footnote\" data-note=\"", "</div>");
                if self.is_shown() {
                    escape::attribute_into(&mut self.html, &label);
                    self.html.push_str("\">");
                }
                self.html.push_str("<sup>");
                escape::text_into(&mut self.html, &label);
                self.html.push_str("</sup>");
            }
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.push("<div class=\"table\"><table>", "</table></div>");
            }
            Tag::TableHead => {
                (self.head, self.column) = (true, 0);
                self.push("<thead><tr>", "</tr></thead><tbody>");
            }
            Tag::TableRow => {
                (self.head, self.column) = (false, 0);
                self.push("<tr>", "</tr>");
            }
            Tag::TableCell => self.start_cell(),
            Tag::Emphasis => self.push("<em>", "</em>"),
            Tag::Strong => self.push("<strong>", "</strong>"),
            Tag::Strikethrough => self.push("<del>", "</del>"),
            Tag::Link { link_type, dest_url, title, id } => self.start_link(link_type, dest_url, title, &id),
            Tag::Image { link_type, dest_url, title, id } => {
                let (url, title) = self.target(link_type, dest_url, title, &id);
                self.image = Some(Image { url, title, alt: String::new(), depth: 0 });
            }
            // Disabled.
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.push("", ""),
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::CodeBlock => return self.end_code(),
            TagEnd::HtmlBlock => {
                // Its first line may still become something else.
                let ends_here = range.end == self.source.len() && self.source[range].contains('\n');
                self.verbatim_end = (ends_here && !is_blank(last_line(self.source))).then_some(self.html.len());
                while self.html.ends_with('\n') {
                    self.html.pop();
                }
            }
            TagEnd::Link => self.links -= 1,
            TagEnd::Table => self.html.push_str("</tbody>"),
            _ => {}
        }
        if let Some(close) = self.open.pop() {
            self.html.push_str(close);
        }
    }

    /// Opens an element, unless that would be too deep.
    fn push(&mut self, open: &str, close: &'static str) {
        if self.open.len() < DEPTH_MAX {
            self.html.push_str(open);
            self.open.push(close);
        } else {
            self.open.push("");
        }
    }

    /// Whether the element pushed last has a tag, whose attributes may follow.
    fn is_shown(&self) -> bool {
        self.open.last().is_some_and(|close| !close.is_empty())
    }

    /// The checkbox of a task. Its item is already open when the parser reports the checkbox.
    fn task(&mut self, done: bool) {
        let (item, label) = if done { ("<li class=\"task done\">", "done") } else { ("<li class=\"task\">", "to do") };
        for opened in ["<li>", "<li><p>"] {
            if let Some(before) = self.html.strip_suffix(opened).map(str::len) {
                self.html.truncate(before);
                self.html.push_str(item);
                self.html.push_str(&opened["<li>".len()..]);
                break;
            }
        }
        self.html.push_str("<i class=\"box\" role=\"img\" aria-label=\"");
        self.html.push_str(label);
        self.html.push_str("\"></i>");
    }

    fn start_cell(&mut self) {
        let alignment = self.alignments.get(self.column).copied().unwrap_or(Alignment::None);
        self.column += 1;
        let (open, close) = match (self.head, alignment) {
            (true, Alignment::None) => ("<th>", "</th>"),
            (true, Alignment::Left) => ("<th class=\"left\">", "</th>"),
            (true, Alignment::Center) => ("<th class=\"center\">", "</th>"),
            (true, Alignment::Right) => ("<th class=\"right\">", "</th>"),
            (false, Alignment::None) => ("<td>", "</td>"),
            (false, Alignment::Left) => ("<td class=\"left\">", "</td>"),
            (false, Alignment::Center) => ("<td class=\"center\">", "</td>"),
            (false, Alignment::Right) => ("<td class=\"right\">", "</td>"),
        };
        self.push(open, close);
    }

    fn start_code(&mut self, kind: CodeBlockKind<'_>, range: Range<usize>) {
        let (info, marks) = match kind {
            CodeBlockKind::Indented => (String::new(), None),
            CodeBlockKind::Fenced(info) => (info.into_string(), Some(fence_marks(&self.source[range]))),
        };
        self.fence = Some(Fence { info, text: String::new(), marks });
    }

    fn end_code(&mut self) {
        let Some(Fence { info, text, marks }) = self.fence.take() else { return };
        let shown = marks.map_or(text.as_str(), |(mark, count)| without_partial_fence(&text, mark, count));
        code::open_into(&mut self.html, &info);
        self.code_lines_end = self.code.lines_into(&mut self.html, &info, shown);
        let mark = marks.map_or(b' ', |(mark, _)| mark);
        let open = self.source.ends_with(last_line(&text)) && is_code_for_sure(&text, mark);
        self.verbatim_end = open.then_some(self.html.len());
        self.html.push_str(code::CLOSE);
    }

    fn code_span(&mut self, text: &str) {
        self.html.push_str("<code>");
        if self.links == 0 {
            links::code_into(&mut self.html, text);
        } else {
            escape::text_into(&mut self.html, text);
        }
        self.html.push_str("</code>");
    }

    fn start_link(&mut self, link_type: LinkType, url: CowStr<'_>, title: CowStr<'_>, id: &str) {
        let (url, title) = self.target(link_type, url, title, id);
        self.links += 1;
        let email = link_type == LinkType::Email;
        let url = if email { format!("mailto:{url}") } else { url };
        match links::opening(&url, &title) {
            Some(open) if self.links == 1 => self.push(&open, "</a>"),
            _ => self.open.push(""),
        }
    }

    /// The target of a link: for references, definitions before the source take precedence over those in it.
    fn target(&self, link_type: LinkType, url: CowStr<'_>, title: CowStr<'_>, id: &str) -> (String, String) {
        let reference = matches!(link_type, LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut);
        match reference.then(|| self.outside.link(id)).flatten() {
            Some((url, title)) => (url.to_owned(), title.to_owned()),
            None => (url.into_string(), title.into_string()),
        }
    }

    /// Everything inside an image is its alternative text.
    fn image_event(&mut self, event: Event<'_>) {
        let Some(image) = &mut self.image else { return };
        match event {
            Event::Start(_) => image.depth += 1,
            Event::End(_) if image.depth > 0 => image.depth -= 1,
            Event::End(_) => self.end_image(),
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => image.alt.push_str(&text),
            Event::SoftBreak | Event::HardBreak => image.alt.push(' '),
            _ => {}
        }
    }

    /// Remote images are never fetched: a request would reveal the reader to the owner of the address.
    fn end_image(&mut self) {
        let Some(image) = self.image.take() else { return };
        let shown = if image.alt.trim().is_empty() { &image.url } else { &image.alt };
        if self.links == 0
            && let Some(open) = links::image_opening(&image.url, &image.title)
        {
            self.html.push_str(&open);
            escape::text_into(&mut self.html, shown);
            self.html.push_str("</a>");
        } else {
            escape::text_into(&mut self.html, shown);
        }
    }

    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        if self.links > 0 {
            escape::text_into(&mut self.html, &self.text);
        } else if let Some((before, word)) = self.marked.take().and_then(|marked| self.text.split_at_checked(marked)) {
            links::text_into(&mut self.html, before);
            self.marked_html = self.html.len();
            links::text_into(&mut self.html, word);
        } else {
            links::text_into(&mut self.html, &self.text);
        }
        self.last_word = self.text.bytes().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
        self.text.clear();
        self.inline.html_end = self.html.len();
    }
}

/// The character of an opening fence and how many of it there are.
pub(super) fn fence_marks(source: &str) -> (u8, usize) {
    let fence = source.trim_start_matches([' ', '\t']).as_bytes();
    let mark = fence.first().copied().unwrap_or(b'`');
    (mark, fence.iter().take_while(|byte| **byte == mark).count())
}

/// Hides a closing fence of which only some marks have arrived; the text of a closed block ends with its last newline.
pub(crate) fn without_partial_fence(text: &str, mark: u8, count: usize) -> &str {
    let last_line = text.rfind('\n').map_or(0, |at| at + 1);
    let line = &text.as_bytes()[last_line..];
    let indent = line.iter().take_while(|byte| **byte == b' ').count();
    let marks = &line[indent..];
    let half = indent < 4 && !marks.is_empty() && marks.len() < count && marks.iter().all(|byte| *byte == mark);
    if half { &text[..last_line] } else { text }
}

/// Whether the last line of a code block is incomplete and certainly code: not a fence, not blank.
pub(crate) fn is_code_for_sure(text: &str, mark: u8) -> bool {
    last_line(text).bytes().any(|byte| !matches!(byte, b' ' | b'\t') && byte != mark)
}

fn last_line(text: &str) -> &str {
    &text[text.rfind('\n').map_or(0, |newline| newline + 1)..]
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

fn heading(level: HeadingLevel) -> (&'static str, &'static str) {
    match level {
        HeadingLevel::H1 => ("<h1>", "</h1>"),
        HeadingLevel::H2 => ("<h2>", "</h2>"),
        HeadingLevel::H3 => ("<h3>", "</h3>"),
        HeadingLevel::H4 => ("<h4>", "</h4>"),
        HeadingLevel::H5 => ("<h5>", "</h5>"),
        HeadingLevel::H6 => ("<h6>", "</h6>"),
    }
}

/// The opening tag of an alert, and its title.
pub(crate) fn alert(kind: BlockQuoteKind) -> (&'static str, &'static str) {
    match kind {
        BlockQuoteKind::Note => ("<blockquote class=\"alert note\">", "Note"),
        BlockQuoteKind::Tip => ("<blockquote class=\"alert tip\">", "Tip"),
        BlockQuoteKind::Important => ("<blockquote class=\"alert important\">", "Important"),
        BlockQuoteKind::Warning => ("<blockquote class=\"alert warning\">", "Warning"),
        BlockQuoteKind::Caution => ("<blockquote class=\"alert caution\">", "Caution"),
    }
}
