//! How a browser gets a credential: by a link with the secret or a one-time ticket.
//!
//! Comes in: `/?token=…`. Goes out: a cookie with a credential of that browser, never the secret, and a redirect to
//! `/`; or a page that explains where to find the link.

use std::time::Instant;

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};

use protocol::ErrorCode;

use crate::access::{Access, Keys, SEC_FETCH_SITE};
use crate::browser_label;
use crate::connection_owner::{self, Connection, ConnectionOwner};
use crate::error::Failure;
use crate::tickets;

const STYLE_PATH: &str = "/sign-in.css";
const STYLE: &str = include_str!("../pages/sign-in.css");
const PAGE: &str = include_str!("../pages/sign-in.html");
const REDIRECT_PAGE: &str = include_str!("../pages/redirect.html");
/// An authorized browser stays authorized until it is revoked or the secret changes.
const COOKIE_SECONDS: u32 = 400 * 24 * 60 * 60;
const INVALID: &str = "This link is no longer valid.";
const OTHER_USER: &str = "This link is for a browser of the user who runs Liminal Builder, on the same machine.";

/// Whether this path may be fetched without the secret.
pub(crate) fn is_open(path: &str) -> bool {
    path == STYLE_PATH
}

/// The token of a sign-in link.
pub(crate) fn offered_token(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// `GET /?token=…`. The token never stays in the address bar.
pub(crate) async fn sign_in(
    access: &Access,
    headers: &HeaderMap,
    offered: &str,
    connection: Option<Connection>,
) -> Response {
    let Some(keys) = &access.keys else { return go_home(headers, &[]) };
    let refusal = match tickets::is_ticket(offered) {
        true => redeem(keys, offered, connection).await.err(),
        false => (!keys.secret.matches(offered)).then_some(INVALID),
    };
    match refusal {
        None => authorize(access, keys, headers).await,
        // An old or used link, opened in a browser that is already authorized.
        Some(_) if access.identify(headers).is_some() => go_home(headers, &[]),
        Some(reason) => {
            tracing::warn!("refused a sign-in link: {reason}");
            page(StatusCode::FORBIDDEN, reason)
        }
    }
}

/// Ok once for a ticket that our own user presents in time.
async fn redeem(keys: &Keys, offered: &str, connection: Option<Connection>) -> Result<(), &'static str> {
    // Before anything is read: only a client that knows a ticket may cause work.
    if !keys.tickets.knows(offered, Instant::now()) {
        return Err(INVALID);
    }
    let asked = connection.map(|connection| tokio::task::spawn_blocking(move || connection_owner::user_of(connection)));
    let user = match asked {
        // Any failure here denies access.
        Some(asked) => asked.await.unwrap_or(ConnectionOwner::Other),
        None => ConnectionOwner::Other,
    };
    match keys.tickets.redeem(offered, user, Instant::now()) {
        true => Ok(()),
        false if user == ConnectionOwner::Ours => Err(INVALID),
        false => Err(OTHER_USER),
    }
}

/// Gives the browser a credential, or keeps the one it has, and redirects it to the page.
pub(crate) async fn authorize(access: &Access, keys: &Keys, headers: &HeaderMap) -> Response {
    let credential = match access.credential(headers) {
        Some(known) => known.to_owned(),
        None => match keys.browsers.authorize(browser_label::of(headers)).await {
            Ok(credential) => credential,
            Err(error) => {
                tracing::error!("could not make a credential: {error}");
                return Failure::new(ErrorCode::InternalError, ErrorCode::InternalError.message("")).into_response();
            }
        },
    };
    let cookie = |name| format!("{name}={credential}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}");
    go_home(headers, &access.cookie_names().map(cookie))
}

/// The page for a person without access.
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

/// A page that redirects to `url`, which consists of an address and a ticket and contains no HTML characters.
pub(crate) fn redirect_page(url: &str) -> String {
    REDIRECT_PAGE.replace("{url}", url)
}

/// After a redirect a browser still attributes a request to the site where it started, and does not send its new
/// cookie. So from another site, such as our own file, the redirect is a page of ours.
fn go_home(headers: &HeaderMap, cookies: &[String]) -> Response {
    let is_foreign = headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none");
    let mut response = match is_foreign {
        true => Html(redirect_page("/")).into_response(),
        false => (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response(),
    };
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// `reason` is one of our own texts, never from the request.
fn page(status: StatusCode, reason: &str) -> Response {
    (status, Html(PAGE.replace("{reason}", reason))).into_response()
}
