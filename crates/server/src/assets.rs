//! The web UI, inside the binary; in debug builds it is read from `web/`, so that a reload shows an edit.
//!
//! A browser revalidates every file, and gets "not modified": eighty requests for one page. So the pages of a release
//! refer to their files with the build in the path, and files under that path may be cached for ever.
//!
//! Only three folders are embedded, and only names made of plain segments are looked up, so no URL can reach a test, a
//! package file or anything outside.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

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

/// Under this path and the name of the build all files exist a second time, and never change.
const BUILD_PATH: &str = "/at/";
const CACHE_FOR_EVER: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

/// The file at `path`, or "not modified" if the browser has it. `None` if there is no such file.
pub(crate) fn file_response(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    build_file_response(build(), method, path, headers)
}

fn build_file_response(build: Option<&str>, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let content_type = content_type(path)?;
    let lasting = build.and_then(|build| path.strip_prefix(BUILD_PATH)?.strip_prefix(build));
    let mut file = find(lasting.unwrap_or(path))?;
    let mut etag = etag(&file);
    if let Some(build) = build.filter(|_| path.ends_with(".html")) {
        file.data = with_build_paths(&file.data, build).into_bytes().into();
        etag = format!("\"{build}\"");
    }
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
    if lasting.is_some() {
        response.headers_mut().insert(header::CACHE_CONTROL, CACHE_FOR_EVER);
    }
    Some(response)
}

/// Identifies this build's files. `None` where they may change while the server runs.
fn build() -> Option<&'static str> {
    static BUILD: OnceLock<String> = OnceLock::new();
    if cfg!(debug_assertions) {
        return None;
    }
    Some(BUILD.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        for (name, file) in names().filter_map(|name| find(&name).map(|file| (name, file))) {
            (name, file.metadata.sha256_hash()).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }))
}

fn names() -> impl Iterator<Item = String> {
    let shell = Shell::iter().map(|name| format!("/shell/{name}"));
    let portlet = Portlet::iter().map(|name| format!("/portlet/{name}"));
    shell.chain(portlet).chain(Shared::iter().map(|name| format!("/shared/{name}")))
}

/// A page that refers to its files under the path of this build; their imports are relative and follow.
fn with_build_paths(page: &[u8], build: &str) -> String {
    let page = String::from_utf8_lossy(page).into_owned();
    ["shell", "portlet", "shared"].iter().fold(page, |page, folder| {
        page.replace(&format!("=\"/{folder}/"), &format!("=\"{BUILD_PATH}{build}/{folder}/"))
    })
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

/// Neither empty nor hidden, and only letters, digits, `-`, `_` and `.`: nothing to decode, no parent directory.
fn is_plain(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with('.')
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn content_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    TYPES.iter().find(|(known, _)| *known == extension).map(|(_, content_type)| *content_type)
}

/// Half of the content's SHA-256 is enough to distinguish two versions.
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
        let mut count = 0;
        for name in names() {
            if content_type(&name).is_none() {
                continue;
            }
            let response =
                file_response(&Method::GET, &name, &HeaderMap::new()).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(response.status(), StatusCode::OK);
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, response.headers()[header::ETAG].clone());
            let again = file_response(&Method::GET, &name, &headers).unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
            count += 1;
        }
        assert!(count > 0, "nothing is embedded");
    }

    /// The references in a page, as written.
    fn references(page: &str) -> Vec<&str> {
        page.split(&[' ', '>']).filter_map(|word| word.strip_prefix("href=").or(word.strip_prefix("src="))).collect()
    }

    #[tokio::test]
    async fn the_pages_of_a_build_refer_to_files_that_may_be_cached_for_ever() {
        for page in [SHELL_PAGE, PORTLET_PAGE] {
            let response = build_file_response(Some("b1"), &Method::GET, page, &HeaderMap::new()).unwrap();
            assert_eq!(response.headers().get(header::CACHE_CONTROL), None, "the page itself is asked for again");
            assert_eq!(response.headers()[header::ETAG], "\"b1\"");
            let length: usize = response.headers()[header::CONTENT_LENGTH].to_str().unwrap().parse().unwrap();
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert_eq!(body.len(), length);
            let html = String::from_utf8(body.to_vec()).unwrap();
            let references: Vec<_> = references(&html).into_iter().filter(|name| name.starts_with("\"/")).collect();
            assert!(references.len() > 10, "{page} refers to {references:?}");
            for name in references.iter().map(|name| name.trim_matches('"')) {
                assert!(name.starts_with("/at/b1/"), "{page} names {name}");
                let file = build_file_response(Some("b1"), &Method::GET, name, &HeaderMap::new()).unwrap();
                assert_eq!(file.headers()[header::CACHE_CONTROL], CACHE_FOR_EVER);
                assert!(
                    build_file_response(Some("b2"), &Method::GET, name, &HeaderMap::new()).is_none(),
                    "{name} is of another build"
                );
                assert!(
                    build_file_response(None, &Method::GET, name, &HeaderMap::new()).is_none(),
                    "{name} without a build"
                );
            }
        }
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
            "/at/b1",
            "/at/b1/",
            "/at/b1shell/index.html",
            "/at/b1/../shell/index.html",
            "/at/b1//shell/index.html",
            "/at//shell/index.html",
            "/at/b1/at/b1/shell/index.html",
        ] {
            assert!(file_response(&Method::GET, path, &HeaderMap::new()).is_none(), "{path:?}");
            assert!(
                build_file_response(Some("b1"), &Method::GET, path, &HeaderMap::new()).is_none(),
                "{path:?} of a build"
            );
        }
    }
}
