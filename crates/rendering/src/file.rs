//! File contents with line numbers, and images.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::cut::{Cut, Lines, gap_into};
use crate::highlight::{self, Highlighter};
use crate::sanitize::sanitize;

/// Base64 characters of a picture; about 4 MB of it.
pub const IMAGE_CHARACTERS_MAX: usize = 5_600_000;

/// A file, or a part of it that begins at `start_line`, with numbers and colours.
///
/// `<div class="file"><div class="line"><span class="num">1</span><span class="src">…</span></div>…</div>`
pub fn file_read(text: &str, start_line: usize, path: &str, cut: Cut) -> Lines {
    let mut html = String::from("<div class=\"file\">");
    let written = numbered_into(&mut html, text, Some(start_line), highlight::of_path(path), cut);
    html.push_str("</div>");
    Lines { html: sanitize(html), ..written }
}

fn numbered_into(html: &mut String, text: &str, start: Option<usize>, language: &str, cut: Cut) -> Lines {
    let lines: Vec<&str> = text.lines().collect();
    let hidden = cut.hidden(lines.len());
    let mut highlighter = Highlighter::new(language);
    for (index, line) in lines.iter().enumerate() {
        if hidden.contains(&index) {
            if index == hidden.start {
                gap_into(html, "cut", hidden.len());
                // What stood in the gap is not read, so whatever it opened is not known.
                highlighter.restart();
            }
            continue;
        }
        html.push_str("<div class=\"line\">");
        if let Some(start) = start {
            html.push_str("<span class=\"num\">");
            html.push_str(&start.saturating_add(index).to_string());
            html.push_str("</span>");
        }
        html.push_str("<span class=\"src\">");
        highlighter.line_into(html, &format!("{line}\n"));
        html.push_str("</span></div>");
    }
    Lines { html: String::new(), lines: lines.len(), hidden: hidden.len() }
}

/// Why a picture is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error("not a png, jpeg, gif or webp image")]
    Type,
    #[error("an image of more than {IMAGE_CHARACTERS_MAX} characters")]
    Size,
    #[error("not base64")]
    Encoding,
}

/// A picture inside the page: `<figure class="image"><img src="data:…" alt="Image"></figure>`. Only types that cannot
/// carry script, whose first bytes are what they say they are.
pub fn image(mime: &str, base64: &str) -> Result<String, ImageError> {
    let kind = match mime.trim().to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return Err(ImageError::Type),
    };
    if base64.len() > IMAGE_CHARACTERS_MAX {
        return Err(ImageError::Size);
    }
    let data: String = base64.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(&data).map_err(|_| ImageError::Encoding)?;
    let genuine = match kind {
        "png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
        "gif" => bytes.starts_with(b"GIF8"),
        _ => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
    };
    if !genuine {
        return Err(ImageError::Type);
    }
    Ok(sanitize(format!(
        "<figure class=\"image\"><img src=\"data:image/{kind};base64,{data}\" alt=\"Image\"></figure>"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_of_a_file_has_its_own_numbers_and_counts_hidden_lines() {
        let text: String = (1..=100).map(|line| format!("line {line}\n")).collect();
        let read = file_read(&text, 41, "notes.txt", Cut { head: 2, tail: 1 });
        assert_eq!((read.lines, read.hidden), (100, 97));
        assert_eq!(
            read.html,
            "<div class=\"file\">\
             <div class=\"line\"><span class=\"num\">41</span><span class=\"src\">line 1\n</span></div>\
             <div class=\"line\"><span class=\"num\">42</span><span class=\"src\">line 2\n</span></div>\
             <div class=\"cut\" data-count=\"97\">⋯ 97 lines</div>\
             <div class=\"line\"><span class=\"num\">140</span><span class=\"src\">line 100\n</span></div></div>"
        );
    }

    #[test]
    fn only_small_genuine_pictures_are_shown() {
        let gif = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
        let html = image("image/gif", gif).unwrap();
        assert!(html.starts_with("<figure class=\"image\"><img src=\"data:image/gif;base64,R0lG"), "{html}");
        assert_eq!(image("image/svg+xml", gif), Err(ImageError::Type));
        assert_eq!(image("image/png", gif), Err(ImageError::Type));
        assert_eq!(image("image/gif", "\"><script>"), Err(ImageError::Encoding));
        assert_eq!(image("image/gif", &"A".repeat(IMAGE_CHARACTERS_MAX + 1)), Err(ImageError::Size));
    }
}
