//! E-mail addresses, and passwords inside of URLs.

use std::ops::Range;

use super::run_end;

const LOCAL_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 253;
const USER_BYTES_MAX: usize = 256;

/// The names of units of systemd look like addresses, as in `getty@tty1.service`.
const UNIT_ENDINGS: [&str; 6] = ["service", "socket", "target", "timer", "slice", "mount"];

/// The address around the sign at `at`, which may be written as `%40`.
pub(super) fn email(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let sign_bytes = match bytes[at] {
        b'@' => 1,
        _ if bytes[at..].starts_with(b"%40") => 3,
        _ => return None,
    };
    let domain_at = at + sign_bytes;
    let domain_limit = bytes.len().min(domain_at + DOMAIN_BYTES_MAX);
    let is_domain_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let domain_end = run_end(&bytes[..domain_limit], domain_at, is_domain_byte);
    let domain = text[domain_at..domain_end].trim_end_matches(['.', '-']);
    if !is_domain(domain) {
        return None;
    }
    let local = local_part(&text[..at])?;
    let start = at - local.len();
    // The user of a repository is not a person, and neither is what stands in front of the host of a URL.
    let is_login = local == "git" || text[..start].ends_with("://");
    (!is_login).then_some(start..domain_at + domain.len())
}

/// The longest end of the text that can be the name in an address.
fn local_part(before: &str) -> Option<&str> {
    let is_local = |letter: char| {
        letter.is_ascii_alphanumeric()
            || matches!(letter, '.' | '_' | '%' | '+' | '-')
            || matches!(letter, '\u{c0}'..='\u{24f}')
    };
    let mut start = before.len();
    for (place, letter) in before.char_indices().rev() {
        if !is_local(letter) || before.len() - place > LOCAL_BYTES_MAX {
            break;
        }
        start = place;
    }
    // `\nname@…` inside of JSON.
    let escaped = before[..start].ends_with('\\') && before[start..].starts_with(['n', 't', 'r']);
    let local = if escaped { &before[start + 1..] } else { &before[start..] };
    let local = local.trim_start_matches(['.', '-', '%', '+']);
    (!local.is_empty() && !local.ends_with('.')).then_some(local)
}

fn is_domain(domain: &str) -> bool {
    let labels: Vec<&str> = domain.split('.').collect();
    let Some((last, rest)) = labels.split_last() else { return false };
    let is_number = |label: &&str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    // `react@18.2.0-rc.beta` is a version, `logo@2x.png` a file.
    let is_version = labels.len() >= 3 && labels.iter().take(2).all(is_number);
    let is_scaled_picture =
        labels.len() == 2 && labels[0].len() == 2 && labels[0].ends_with('x') && is_number(&&labels[0][..1]);
    !rest.is_empty()
        && labels.iter().all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'))
        && last.len() >= 2
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !is_version
        && !is_scaled_picture
        && !UNIT_ENDINGS.contains(last)
}

/// The password of `scheme://user:password@host`, whose `://` is at `at`.
pub(super) fn password_in_url(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if !bytes[at..].starts_with(b"://") || at == 0 || !bytes[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    let from = at + 3;
    let limit = bytes.len().min(from + USER_BYTES_MAX);
    let is_user =
        |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\');
    let end = run_end(&bytes[..limit], from, is_user);
    let host = bytes[from..end].iter().rposition(|byte| *byte == b'@')? + from;
    let colon = bytes[from..host].iter().position(|byte| *byte == b':')? + from;
    let password = &bytes[colon + 1..host];
    let is_placeholder = password.is_empty() || super::assignments::is_placeholder(password);
    (!is_placeholder).then_some(colon + 1..host)
}
