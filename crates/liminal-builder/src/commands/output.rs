//! What a tool printed, as lines of text again.
//!
//! Comes in: the patches of rendered lines that a `view` socket sends, with every escape sequence already resolved by the
//! server. Goes out: the same lines without their markup.

use protocol::BlockPatch;

/// The lines as they stand.
#[derive(Debug, Default)]
pub(crate) struct Output {
    lines: Vec<String>,
}

impl Output {
    /// The rule of [`BlockPatch`].
    pub(crate) fn apply(&mut self, patch: &BlockPatch) {
        let kept = self.lines.get(patch.from).map(|line| {
            let units: Vec<u16> = line.encode_utf16().take(patch.keep).collect();
            String::from_utf16_lossy(&units)
        });
        let kept = kept.unwrap_or_default();
        self.lines.truncate(patch.from);
        for (index, html) in patch.html.iter().enumerate() {
            let head = if index == 0 { kept.as_str() } else { "" };
            self.lines.push(format!("{head}{html}"));
        }
    }

    /// The newest lines, without empty ones at the end.
    pub(crate) fn tail(&self, lines_max: usize) -> Vec<String> {
        let texts: Vec<String> = self.lines.iter().map(|line| text(line).trim_end().to_owned()).collect();
        let end = texts.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        texts[end.saturating_sub(lines_max)..end].to_vec()
    }
}

/// Without tags, and with the characters that the renderer's entities stand for.
fn text(html: &str) -> String {
    let mut plain = String::with_capacity(html.len());
    let mut in_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if in_tag => {}
            _ => plain.push(letter),
        }
    }
    plain.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_their_markup_and_grow_by_patches() {
        let patch = |from, keep, html: &[&str]| BlockPatch {
            from,
            keep,
            html: html.iter().map(|line| (*line).into()).collect(),
        };
        let mut output = Output::default();
        output.apply(&patch(
            0,
            0,
            &["<div class=\"line\">a &lt;b&gt; &amp;lt;\n</div>", "<div class=\"line\">hal\n</div>"],
        ));
        output.apply(&patch(1, 21, &["f <span class=\"fg1\">red</span>\n</div>", "<div class=\"line\">\n</div>"]));
        assert_eq!(output.tail(10), ["a <b> &lt;", "half red"]);
        assert_eq!(output.tail(1), ["half red"]);
    }
}
