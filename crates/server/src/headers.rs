//! The headers every response carries.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;

const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; \
     form-action 'self'; require-trusted-types-for 'script'; trusted-types liminal-rendered liminal-sprite liminal-worker";

const EVERYWHERE: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds them to every response: a page, an answer, a refusal.
pub(crate) async fn secure(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in EVERYWHERE {
        headers.insert(name, HeaderValue::from_static(value));
    }
    keep_out_of_caches(headers);
    response
}

/// Only files that never change may be cached without revalidation (`assets.rs` marks them). Other assets are
/// revalidated by their ETag; all else is not cached.
fn keep_out_of_caches(headers: &mut HeaderMap) {
    let rule = if headers.contains_key(header::ETAG) { "no-cache" } else { "no-store" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(rule));
}
