//! Who may talk to this port. Every request passes here first.
//!
//! Comes in: a request's head. Goes out: the request, or a refusal with its reason. Localhost is not a security
//! boundary: any web page can make the browser send requests here, a rebound name can make them look same-origin, and
//! any user of the machine can connect. So a request needs one of our names, no foreign origin, and the secret.
//! Kept out: bodies, sessions, and the sign-in pages themselves.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use protocol::ErrorCode;

use crate::error::Failure;
use crate::hosts::Hosts;
use crate::secret::{Secret, Ticket};
use crate::sign_in;

/// The cookie that carries the secret. A browser keeps one jar for all ports of a host, so a second server on this
/// machine overwrites it; the same name with our port behind it is ours alone. Either is good.
const COOKIE: &str = "liminal_token";
const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// The one API route that tells nothing and so needs no secret.
pub(crate) const HEALTH: &str = "/api/health";

/// The rules of this server's door.
#[derive(Clone, Debug)]
pub struct Access {
    pub hosts: Arc<Hosts>,
    /// `None` lets everyone in who passes the other rules; the binary allows that on loopback only.
    pub secret: Option<Secret>,
    pub ticket: Ticket,
    /// [`COOKIE`] with our port.
    own_cookie: Arc<str>,
}

/// The middleware.
pub(crate) async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    match access.check(&request) {
        Ok(()) => next.run(request).await,
        Err(failure) => {
            let path = request.uri().path();
            tracing::warn!(method = %request.method(), path, status = failure.status().as_u16(), "refused: {}", failure.message());
            let mut response =
                if wants_page(&request) { sign_in::refusal_page(&failure) } else { failure.into_response() };
            // Whoever was refused has no claim on a connection.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
    }
}

impl Access {
    pub fn new(hosts: Hosts, secret: Option<Secret>) -> Self {
        let own_cookie = format!("{COOKIE}_{}", hosts.port()).into();
        Self { hosts: Arc::new(hosts), secret, ticket: Ticket::default(), own_cookie }
    }

    /// The names under which a browser is to keep the secret.
    pub(crate) fn cookie_names(&self) -> [&str; 2] {
        [COOKIE, &self.own_cookie]
    }

    fn check(&self, request: &Request) -> Result<(), Failure> {
        let headers = request.headers();
        self.check_host(request)?;
        self.check_origin(headers)?;
        check_content_type(request.method(), headers)?;
        let path = request.uri().path();
        if path == HEALTH || sign_in::is_open(path) || self.secret.is_none() {
            return Ok(());
        }
        if path == "/" && sign_in::offered_token(request.uri()).is_some() {
            return Ok(()); // The route itself looks at the token in the link.
        }
        match self.admits(headers) {
            true => Ok(()),
            false => Err(Failure::new(ErrorCode::Unauthorized, ErrorCode::Unauthorized.message(""))),
        }
    }

    fn check_host(&self, request: &Request) -> Result<(), Failure> {
        let refuse =
            |reason: &str| Err(Failure::new(ErrorCode::Forbidden, reason).with_status(StatusCode::MISDIRECTED_REQUEST));
        let Some(host) = only(request.headers(), header::HOST.as_str()) else {
            return refuse("Exactly one Host header is needed.");
        };
        // In absolute form the target names the host a second time, and that one wins for whoever reads it.
        let target = request.uri().authority().map(|authority| authority.as_str());
        if self.hosts.allows_host(host) && target.is_none_or(|target| self.hosts.allows_host(target)) {
            return Ok(());
        }
        refuse("This server does not answer to that host name. Start it with --allowed-hosts to add one.")
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let refuse = |reason: &str| Err(Failure::new(ErrorCode::Forbidden, reason));
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, header::ORIGIN.as_str());
            if !origin.is_some_and(|origin| self.hosts.allows_origin(origin)) {
                return refuse("Requests from another origin are not allowed.");
            }
        }
        if headers.contains_key(SEC_FETCH_SITE)
            && !matches!(only(headers, SEC_FETCH_SITE), Some("same-origin" | "none"))
        {
            return refuse("Requests from another site are not allowed. Type or paste the link into the address bar.");
        }
        Ok(())
    }

    /// Is the secret among what these headers offer, if one is needed?
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(secret) = &self.secret else { return true };
        let bearer = only(headers, header::AUTHORIZATION.as_str()).and_then(bearer);
        let offered = bearer.into_iter().chain(cookies(headers, self.cookie_names()));
        // Every offer is compared, so that the time tells nothing about which one was right.
        offered.fold(false, |found, offer| found | secret.matches(offer))
    }
}

/// A form or a script of a foreign page can send `text/plain` without asking first; JSON it cannot.
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

/// The value of a header that must stand there once, if it does and is text.
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

/// Another server on this machine may have set a cookie of the same name: all are looked at.
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

/// Is a person looking at the answer, rather than a script? At the front door always, unless it asks for JSON alone.
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
    fn every_cookie_of_our_name_is_looked_at() {
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
    fn a_header_that_stands_there_twice_is_none() {
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
