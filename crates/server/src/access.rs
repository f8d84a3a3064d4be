//! Access control. Every request passes here first.
//!
//! Comes in: the head of a request. Goes out: the request with its client, or a refusal with its reason. Localhost is
//! not a security boundary: any web page can make the browser send requests here, DNS rebinding can make them look
//! same-origin, and any user of the machine can connect. So a request needs one of our host names, no foreign origin,
//! and either the secret or the credential of an authorized browser. Kept out: bodies, sessions, and the sign-in pages.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use catalog::{Catalog, CatalogError};
use protocol::ErrorCode;

use crate::browsers::{BrowserAccess, Browsers};
use crate::error::Failure;
use crate::hosts::Hosts;
use crate::secret::Secret;
use crate::tickets::{self, Delivery, Tickets};
use crate::{connection_owner, service_worker, sign_in};

/// The cookie with a browser's credential. A browser shares cookies between all ports of a host, so a second server on
/// this machine overwrites it; the same name followed by our port is used only by us. Either is accepted.
const COOKIE: &str = "liminal_token";
pub(crate) const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// The one API route that reveals nothing and so needs no secret.
pub(crate) const HEALTH: &str = "/api/health";

/// The access rules of this server.
#[derive(Clone, Debug)]
pub struct Access {
    pub(crate) hosts: Arc<Hosts>,
    /// `None` accepts everyone who passes the other rules; the binary allows that on loopback only.
    pub(crate) keys: Option<Keys>,
    /// [`COOKIE`] with our port.
    own_cookie: Arc<str>,
}

/// What a client may authenticate with.
#[derive(Clone, Debug)]
pub struct Keys {
    pub(crate) secret: Secret,
    pub(crate) browsers: Browsers,
    pub(crate) tickets: Tickets,
    delivery: Delivery,
    catalog: Catalog,
}

/// The client that sent an accepted request.
#[derive(Clone, Debug)]
pub(crate) enum Client {
    /// No secret is needed here.
    Anyone,
    /// A client that holds the secret itself: scripts, the command line.
    Secret,
    Browser(Arc<BrowserAccess>),
    /// A browser of version 0.1, whose cookie holds the secret itself. It may load the page, which gives it a credential.
    OldCookie,
}

/// A one-time link for a browser that is about to be started.
#[derive(Debug)]
pub struct OneTimeLink {
    /// On this server, with the ticket.
    pub path: String,
    /// A page that redirects there, for when the ticket must not be on a command line.
    pub file: Option<String>,
}

/// The middleware.
pub(crate) async fn guard(State(access): State<Access>, mut request: Request, next: Next) -> Response {
    match access.check(&request) {
        Ok(_) if service_worker::is_script_request(&request) => service_worker::removal(),
        Ok(client) => {
            if let Some(client) = client {
                request.extensions_mut().insert(client);
            }
            next.run(request).await
        }
        Err(failure) => {
            let path = request.uri().path();
            tracing::warn!(method = %request.method(), path, status = failure.status().as_u16(), "refused: {}", failure.message());
            let mut response =
                if wants_page(&request) { sign_in::refusal_page(&failure) } else { failure.into_response() };
            // A refused client must not keep its connection.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
    }
}

impl Keys {
    /// `by_file` passes tickets in a file even where the system reports the owner of a connection.
    pub fn new(secret: Secret, browsers: Browsers, catalog: Catalog, by_file: bool) -> Self {
        let delivery = match by_file || !connection_owner::reports_owner() {
            true => Delivery::PrivateFile,
            false => Delivery::CommandLine,
        };
        Self { secret, browsers, tickets: Tickets::default(), delivery, catalog }
    }

    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// A new ticket. `base_url` is where the browser will find this server. Blocks on the disk if a file is needed.
    pub fn issue_ticket(&self, base_url: &str) -> Result<OneTimeLink, CatalogError> {
        let storage = |error| CatalogError::Storage { path: "/dev/urandom".into(), source: Arc::new(error) };
        let ticket = tickets::new_ticket().map_err(storage)?;
        let path = format!("/?token={}", ticket.reveal());
        let file = match self.delivery {
            Delivery::CommandLine => None,
            Delivery::PrivateFile => {
                Some(self.catalog.redirect_file(&sign_in::redirect_page(&format!("{base_url}{path}")))?)
            }
        };
        let shown = file.as_ref().map(|file| file.path().display().to_string());
        self.tickets.add(ticket, self.delivery, file, Instant::now());
        Ok(OneTimeLink { path, file: shown })
    }
}

impl Access {
    pub fn new(hosts: Hosts, keys: Option<Keys>) -> Self {
        let own_cookie = format!("{COOKIE}_{}", hosts.port()).into();
        Self { hosts: Arc::new(hosts), keys, own_cookie }
    }

    /// The names under which a browser stores its credential.
    pub(crate) fn cookie_names(&self) -> [&str; 2] {
        [COOKIE, &self.own_cookie]
    }

    /// Identifies the client. `None` for public files, and for a sign-in link, which the route itself checks.
    fn check(&self, request: &Request) -> Result<Option<Client>, Failure> {
        let headers = request.headers();
        let path = request.uri().path();
        let is_page = path == "/" && request.method() == Method::GET;
        let token = sign_in::offered_token(request.uri()).filter(|_| is_page);
        self.check_host(request)?;
        self.check_origin(headers, token.is_some_and(tickets::is_ticket))?;
        check_content_type(request.method(), headers)?;
        if path == HEALTH || sign_in::is_open(path) || token.is_some() || service_worker::is_script_request(request) {
            return Ok(None);
        }
        match self.identify(headers) {
            Some(Client::OldCookie) if !is_page => {}
            Some(client) => return Ok(Some(client)),
            None => {}
        }
        Err(Failure::new(ErrorCode::Unauthorized, ErrorCode::Unauthorized.message("")))
    }

    fn check_host(&self, request: &Request) -> Result<(), Failure> {
        let refuse =
            |reason: &str| Err(Failure::new(ErrorCode::Forbidden, reason).with_status(StatusCode::MISDIRECTED_REQUEST));
        let Some(host) = only(request.headers(), header::HOST.as_str()) else {
            return refuse("Exactly one Host header is needed.");
        };
        // In absolute form the target names the host a second time, and that one takes precedence.
        let target = request.uri().authority().map(|authority| authority.as_str());
        if self.hosts.allows_host(host) && target.is_none_or(|target| self.hosts.allows_host(target)) {
            return Ok(());
        }
        refuse("This server does not answer to that host name. Start it with --allowed-hosts to add one.")
    }

    /// A one-time link may come from a file that we wrote, which the browser treats as another site. Without a valid
    /// ticket this gains nothing.
    fn check_origin(&self, headers: &HeaderMap, has_ticket: bool) -> Result<(), Failure> {
        let refuse = |reason: &str| Err(Failure::new(ErrorCode::Forbidden, reason));
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, header::ORIGIN.as_str());
            if !origin.is_some_and(|origin| self.hosts.allows_origin(origin)) {
                return refuse("Requests from another origin are not allowed.");
            }
        }
        let is_navigation =
            only(headers, "sec-fetch-mode") == Some("navigate") && only(headers, "sec-fetch-dest") == Some("document");
        if headers.contains_key(SEC_FETCH_SITE)
            && !matches!(only(headers, SEC_FETCH_SITE), Some("same-origin" | "none"))
            && !(has_ticket && is_navigation)
        {
            return refuse("Requests from another site are not allowed. Type or paste the link into the address bar.");
        }
        Ok(())
    }

    /// Identifies the client by these headers; `None` if they do not grant access.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Option<Client> {
        let Some(keys) = &self.keys else { return Some(Client::Anyone) };
        let bearer = only(headers, header::AUTHORIZATION.as_str()).and_then(bearer);
        // Every value is compared, so that the time does not reveal which one matched.
        let holds_secret = bearer.is_some_and(|offer| keys.secret.matches(offer));
        let (mut browser, mut is_old) = (None, false);
        for offer in cookies(headers, self.cookie_names()) {
            browser = keys.browsers.admit(offer).or(browser);
            is_old |= keys.secret.matches(offer);
        }
        match browser {
            _ if holds_secret => Some(Client::Secret),
            Some(access) => Some(Client::Browser(access)),
            None => is_old.then_some(Client::OldCookie),
        }
    }

    /// The credential that a browser sent, if it is valid.
    pub(crate) fn credential<'a>(&'a self, headers: &'a HeaderMap) -> Option<&'a str> {
        let keys = self.keys.as_ref()?;
        cookies(headers, self.cookie_names()).filter(|offer| keys.browsers.admit(offer).is_some()).last()
    }
}

/// A form or a script of a foreign page can send `text/plain` without a preflight request, but not JSON.
fn check_content_type(method: &Method, headers: &HeaderMap) -> Result<(), Failure> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let has_body = headers.contains_key(header::TRANSFER_ENCODING)
        || headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0");
    let is_json = only(headers, header::CONTENT_TYPE.as_str()).is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/json")
    });
    if is_json || !(has_body || headers.contains_key(header::CONTENT_TYPE)) {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::Forbidden, "The body must be sent as application/json."))
}

/// The value of a header that must occur exactly once, if it does and is text.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// A scheme's name is the same in upper and lower case.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, offered) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(offered)
}

/// Another server on this machine may have set a cookie of the same name: all are checked.
fn cookies<'a>(headers: &'a HeaderMap, names: [&'a str; 2]) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(move |pair| {
            pair.trim().split_once('=').filter(|(key, _)| names.contains(key)).map(|(_, value)| value)
        })
}

/// Whether a person will see the answer, not a script: always at `/`, unless it accepts only JSON.
fn wants_page(request: &Request) -> bool {
    let path = request.uri().path();
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let only_json = accept.contains("json") && !accept.contains("text/html") && !accept.contains("*/*");
    match path {
        "/" | "/portlet" | "/portlet/" => !only_json,
        _ => !path.starts_with("/api/") && path != "/ws" && accept.contains("text/html"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn every_cookie_of_our_name_is_checked() {
        let headers =
            headers(&[("cookie", "a=1; liminal_token=x"), ("cookie", "liminal_token_3000=y;liminal_token_3001=z")]);
        assert_eq!(cookies(&headers, [COOKIE, "liminal_token_3000"]).collect::<Vec<_>>(), ["x", "y"]);
    }

    #[test]
    fn a_bearer_is_one_in_any_case_and_nothing_else_is() {
        for good in ["Bearer x", "bearer x", "BEARER x"] {
            assert_eq!(bearer(good), Some("x"), "{good}");
        }
        for bad in ["", "x", "Bearer", "Bearerx", "Basic x", " Bearer x"] {
            assert_eq!(bearer(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_header_that_occurs_twice_is_ignored() {
        assert_eq!(only(&headers(&[("host", "a")]), "host"), Some("a"));
        assert_eq!(only(&headers(&[("host", "a"), ("host", "a")]), "host"), None);
    }

    #[test]
    fn only_json_may_be_posted() {
        let check = |pairs: &[_]| check_content_type(&Method::POST, &headers(pairs)).is_ok();
        assert!(check(&[]));
        assert!(check(&[("content-length", "0")]));
        assert!(check(&[("content-length", "2"), ("content-type", "Application/JSON; charset=utf-8")]));
        assert!(!check(&[("content-length", "2")]));
        assert!(!check(&[("transfer-encoding", "chunked")]));
        assert!(!check(&[("content-type", "text/plain")]));
        assert!(!check(&[("content-type", "text/plain; application/json")]));
        assert!(!check(&[("content-type", "application/json"), ("content-type", "text/plain")]));
    }
}
