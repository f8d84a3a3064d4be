//! Answers a browser that looks for a service worker here.
//!
//! Port 3000 is shared with many development servers, and a service worker installed by one of them keeps answering for
//! the whole origin, in our place. The browser requests its script again from time to time; this script removes the
//! worker.

use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};

const SCRIPT: &str = include_str!("../pages/service-worker.js");

/// Browsers set this header on requests for such a script and on no others, and let no page set it.
pub(crate) fn is_script_request(request: &Request) -> bool {
    request.method() == Method::GET
        && request.headers().get("service-worker").is_some_and(|value| value.as_bytes() == b"script")
}

pub(crate) fn removal() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT).into_response()
}
