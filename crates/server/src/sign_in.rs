//! How a browser comes to hold the secret: the link that was printed at the start, once.
//!
//! Comes in: `/?token=…`. Goes out: the cookie and a redirect to `/`, or a page that says where to find the link.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};

use protocol::ErrorCode;

use crate::access::Access;
use crate::error::Failure;

const STYLE_PATH: &str = "/sign-in.css";
const STYLE: &str = include_str!("../pages/sign-in.css");
const PAGE: &str = include_str!("../pages/sign-in.html");
/// A browser that has been let in once stays in: the secret only changes when its file is deleted.
const COOKIE_SECONDS: u32 = 400 * 24 * 60 * 60;

/// May this path be fetched without the secret?
pub(crate) fn is_open(path: &str) -> bool {
    path == STYLE_PATH
}

/// The token of a sign-in link.
pub(crate) fn offered_token(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// `/?token=…`. The token never stays in the address bar.
pub(crate) fn enter(access: &Access, headers: &HeaderMap, offered: &str) -> Response {
    if let Some(secret) = &access.secret
        && (secret.matches(offered) || access.ticket.redeem(offered))
    {
        let cookie =
            |name| format!("{name}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}", secret.reveal());
        return redirect_home(&access.cookie_names().map(cookie));
    }
    // An old link in the history, or one that worked once, of a browser that is in already.
    if access.admits(headers) {
        return redirect_home(&[]);
    }
    tracing::warn!("refused a sign-in link with a wrong token");
    page(StatusCode::FORBIDDEN, "This link is no longer valid.")
}

/// What a person sees who may not come in.
pub(crate) fn refusal_page(failure: &Failure) -> Response {
    let reason = match failure.code() {
        ErrorCode::Unauthorized => "This browser has not been let in yet.",
        _ => failure.message(),
    };
    page(failure.status(), reason)
}

pub(crate) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

fn redirect_home(cookies: &[String]) -> Response {
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// `reason` is one of our own texts, never the visitor's.
fn page(status: StatusCode, reason: &str) -> Response {
    (status, Html(PAGE.replace("{reason}", reason))).into_response()
}
