//! The web UI, inside the binary; in debug builds it is read from `web/`, so that a reload shows an edit.
//!
//! Only three folders are embedded, and only names made of plain segments are looked up, so no URL can reach a test, a
//! package file or anything outside.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "../../web/shell/"]
struct Shell;

#[derive(RustEmbed)]
#[folder = "../../web/portlet/"]
struct Portlet;

#[derive(RustEmbed)]
#[folder = "../../web/shared/"]
struct Shared;

pub(crate) const SHELL_PAGE: &str = "/shell/index.html";
pub(crate) const PORTLET_PAGE: &str = "/portlet/index.html";

/// What may be served, and as what.
const TYPES: [(&str, &str); 7] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("woff2", "font/woff2"),
];

/// The file at `path`, or the news that the browser has it already. `None`: there is no such file.
pub(crate) fn serve(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let content_type = content_type(path)?;
    let file = find(path)?;
    let etag = etag(&file);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == etag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let length = file.data.len();
        let body = if method == Method::HEAD { Body::empty() } else { Body::from(file.data) };
        ([(header::CONTENT_TYPE, content_type), (header::CONTENT_LENGTH, &length.to_string())], body).into_response()
    };
    response.headers_mut().insert(header::ETAG, HeaderValue::from_str(&etag).ok()?);
    Some(response)
}

fn find(path: &str) -> Option<EmbeddedFile> {
    let (folder, name) = path.strip_prefix('/')?.split_once('/')?;
    if !name.split('/').all(is_plain) {
        return None;
    }
    match folder {
        "shell" => Shell::get(name),
        "portlet" => Portlet::get(name),
        "shared" => Shared::get(name),
        _ => None,
    }
}

/// Neither empty nor hidden, and of letters, digits, `-`, `_` and `.` alone: nothing to decode, nothing to climb with.
fn is_plain(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with('.')
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn content_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    TYPES.iter().find(|(known, _)| *known == extension).map(|(_, content_type)| *content_type)
}

/// Half of the content's SHA-256 is more than enough to tell two versions apart.
fn etag(file: &EmbeddedFile) -> String {
    let hash = file.metadata.sha256_hash();
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_file_that_has_a_type_can_be_fetched_and_is_not_sent_twice() {
        let names = Shell::iter().map(|name| format!("/shell/{name}"));
        let names = names.chain(Portlet::iter().map(|name| format!("/portlet/{name}")));
        let mut count = 0;
        for name in names.chain(Shared::iter().map(|name| format!("/shared/{name}"))) {
            if content_type(&name).is_none() {
                continue;
            }
            let response = serve(&Method::GET, &name, &HeaderMap::new()).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(response.status(), StatusCode::OK);
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, response.headers()[header::ETAG].clone());
            let again = serve(&Method::GET, &name, &headers).unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
            count += 1;
        }
        assert!(count > 0, "nothing is embedded");
    }

    #[test]
    fn no_path_leads_outside() {
        for path in [
            "",
            "/",
            "//",
            "/..",
            "/shell",
            "/shell/",
            "/shell//index.html",
            "/shell/../shell/index.html",
            "/shell/../../Cargo.toml",
            "/shell/./index.html",
            "/shell/.hidden.html",
            "/shell/..%2findex.html",
            "/shell/..\\..\\web\\shell\\index.html",
            "/tests/index.html",
            "/package.json",
            "/shared/protocol.d.ts",
            "/shell/index.html\0",
            "shell/index.html",
        ] {
            assert!(serve(&Method::GET, path, &HeaderMap::new()).is_none(), "{path:?}");
        }
    }
}
