//! Every path this server has.

mod body;
mod browsers;
mod change;
mod export;
mod health;
mod journal;
pub(crate) mod openapi;
mod session;
mod ticket;
mod usage;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};

use crate::access::Client;
use crate::error::Failure;
use crate::{App, access, assets, headers, sign_in, socket};

pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(shell))
        .route("/portlet", get(portlet))
        .route("/portlet/", get(portlet))
        .route("/sign-in.css", get(sign_in::style))
        .route("/ws", any(socket::upgrade))
        .route(access::HEALTH, get(health::health))
        .route("/api/openapi.json", get(openapi::document))
        .route("/api/ticket", post(ticket::issue))
        .route("/api/browsers", get(browsers::list))
        .route("/api/browsers/revoke", post(browsers::revoke))
        .route("/api/usage", get(usage::usage))
        .route("/api/session/list", get(session::list))
        .route("/api/session/{id}/status", get(session::status))
        .route("/api/session/{id}/export", get(export::export))
        .route("/api/journal", get(journal::stats))
        .route("/api/journal/check", post(journal::check))
        .merge(changes(&app))
        .method_not_allowed_fallback(no_such_method)
        .fallback(asset)
        .layer(from_fn_with_state(app.access.clone(), access::guard))
        .layer(map_response(headers::secure))
        .with_state(app)
}

/// Routes that change something. They complete whether or not the client waits.
fn changes(app: &App) -> Router<App> {
    Router::new()
        .route("/api/session/create", post(session::create))
        .route("/api/session/{id}/load", post(session::load))
        .route("/api/session/{id}/send", post(session::send))
        .route("/api/session/{id}/cancel", post(session::cancel))
        .route("/api/session/{id}/kill", post(session::kill))
        .route("/api/journal/prune", post(journal::prune))
        .route_layer(from_fn_with_state(app.clone(), change::run_to_completion))
}

async fn shell(State(app): State<App>, request: Request) -> Response {
    let (headers, extensions) = (request.headers(), request.extensions());
    // A HEAD request for a link must not use it up.
    let token = sign_in::offered_token(request.uri()).filter(|_| request.method() == Method::GET);
    match (token, extensions.get(), &app.access.keys) {
        (Some(offered), _, _) => sign_in::sign_in(&app.access, headers, offered, extensions.get().copied()).await,
        (None, Some(Client::OldCookie), Some(keys)) => sign_in::authorize(&app.access, keys, headers).await,
        _ => file(&request, assets::SHELL_PAGE),
    }
}

async fn portlet(request: Request) -> Response {
    file(&request, assets::PORTLET_PAGE)
}

async fn asset(request: Request) -> Response {
    file(&request, request.uri().path())
}

fn file(request: &Request, path: &str) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return ([(header::ALLOW, "GET, HEAD")], method_not_allowed()).into_response();
    }
    assets::file_response(request.method(), path, request.headers())
        .unwrap_or_else(|| Failure::no_such("There is nothing at this path.", StatusCode::NOT_FOUND).into_response())
}

async fn no_such_method() -> Failure {
    method_not_allowed()
}

fn method_not_allowed() -> Failure {
    Failure::no_such("This path does not take that method.", StatusCode::METHOD_NOT_ALLOWED)
}
