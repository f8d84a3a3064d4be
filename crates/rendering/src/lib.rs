//! The output of agents as safe HTML.
//!
//! Comes in: text, edits, terminal output. Goes out: HTML limited to an allow-list, in blocks or lines that can be sent
//! one by one. Kept out: tokio, files, clocks, sessions. Everything is a pure function, or grows by `push`.
//!
//! # Text
//!
//! [`markdown`] renders a whole text. [`LiveMarkdown`] renders a growing text, with the same result at every moment, to
//! the byte. Both show incomplete constructs as text (`**bol` is text until it is closed), with one exception: an
//! incomplete closing code fence is not shown. The last line of an open code block is plain until it is complete. A
//! link label or a footnote may be defined later in the text: everything that refers to it is then rendered again. In a
//! live text a link definition takes effect, and is shown as one, when its line is complete; [`LiveMarkdown::finish`]
//! completes the last line.
//!
//! A reader of a live text keeps a [`Mark`]. [`LiveMarkdown::patch_since`] returns what it lacks as a [`BlockPatch`];
//! positions are counted in UTF-16 units, as in JavaScript. A patch contains only what changed and the closing tags.
//!
//! There is one known difference: if reference links expand to more than 100 KB of addresses, the parser's limit
//! against that attack applies to the whole text in a full render and to each part in a live one.
//!
//! ## Cost
//!
//! On one busy core: 100 KB of prose in 2 ms; code at the highlighter's own speed, 1.5 to 2 ms per KB. A line added to an open
//! code block costs what the line costs, however long the block is.
//!
//! A growing text, 50 KB in chunks of five characters, with a reader that is updated after each, relative to one full
//! render (`cargo bench -p rendering --bench shapes`, CPU time):
//!
//! | shape | streamed ÷ full |
//! |---|---|
//! | code; code in a list item; mixed | 0.9–1.9; 0.7–1.3; 0.8–1.5 |
//! | prose; one paragraph; one of many lines | 8.6–9.1; 10–15; 9–15 |
//! | list; loose list; list inside an item; nested list | 11–18; 15; 14–17; 20 |
//! | one list item, quote, alert or footnote without an end | 13–17 |
//! | paragraph after an open `*`, `` ` ``, `[` | 9; 15; 13 |
//! | code without a language; raw HTML; indented code | 20; 26; 31 |
//! | table; table in a list item | 19–30; 35–50 |
//! | one word without an end; one that may be an address | 85; 138 |
//!
//! All of them are linear. A high ratio means a cheap full render: none takes more than 7 µs per chunk. Where the
//! parser has to start from the beginning at each chunk (only `[`, or a line of 50 KB inside raw HTML: every mark may
//! still be closed), it does so only after the text has grown by a fraction; the text added since then is shown at that
//! time, or by [`LiveMarkdown::finish`].
//!
//! ## Limits
//!
//! Highlighting is limited by `highlight::limits` and comparing by `diff::compare`: what exceeds the limit is plain, or
//! shown as removed and added as a whole. Both limits are counters, not timers, so the result is always the same.
//!
//! ## HTML of a block
//!
//! | markdown | HTML |
//! |---|---|
//! | paragraph, heading, list, quote, rule | `p` `h1`–`h6` `ul` `ol` `blockquote` `hr`; single newlines are `<br>` |
//! | code | `<figure class="code"><figcaption>Rust<span class="src">src/lib.rs</span></figcaption><pre><code>…</code></pre></figure>`; the file is there if the fence names one; the caption is there without a language too, as the place for a Copy button; colours are `<i class="k">` and the letters of `highlight::classes`, `<i>` for punctuation |
//! | table | `<div class="table"><table>…`, alignment as class `left`, `center`, `right` |
//! | task | `<li class="task done"><i class="box" role="img" aria-label="done"></i>…`, or `task` and `to do` |
//! | alert | `<blockquote class="alert note"><p class="alert-title">Note</p>…`, also `tip` `important` `warning` `caution` |
//! | footnote | `<sup class="note" data-note="a">a</sup>` and, where it is defined, `<div class="footnote" data-note="a"><sup>a</sup>…</div>` |
//! | link, bare address | `<a href="…" target="_blank" rel="noopener noreferrer nofollow">`; http, https and mailto only |
//! | picture | a link, `<a class="image" href="…" …>alt</a>`: nothing is fetched |
//! | `file:line`, link to a path | `<a class="ref" data-path="src/a.rs" data-line="12" role="link" tabindex="0" rel="…">` |
//! | raw HTML | text; a block of it is `<p class="html">`; `<br>` alone is a line break |
//!
//! # Tool calls
//!
//! [`diff`] (`div.diff`), [`terminal`] and [`LiveTerminal`] (`div.terminal`), [`file_read`] (`div.file`),
//! [`image`]. Each documents its HTML. Long content is cut by a [`Cut`]; asking again
//! with [`Cut::WHOLE`] gives all of it.
//!
//! # Colours
//!
//! The grammars are one embedded file of 984 KB, compressed. It is unpacked when the first code is highlighted.
//!
//! # Safety
//!
//! Writers escape everything that is not their own markup, and a sanitizer with one allow-list is the last step of every
//! function here. `web/shared/content.css` styles what is let through.

mod code;
mod cut;
mod diff;
mod escape;
mod file;
mod highlight;
mod live;
mod markdown;
mod sanitize;
mod terminal;

pub use cut::{Cut, Lines};
pub use diff::{DiffHtml, DiffView, diff};
pub use file::{IMAGE_CHARACTERS_MAX, ImageError, file_read, image};
pub use live::{BlockPatch, LiveMarkdown, Mark};
pub use markdown::markdown;
pub use sanitize::sanitized;
pub use terminal::{LiveTerminal, terminal};
