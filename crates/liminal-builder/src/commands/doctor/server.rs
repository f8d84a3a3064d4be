//! The server, if one runs: does it answer, is it this version, does a browser get in, and does nobody else? If none
//! runs: could it have its port?

use std::time::Duration;

use catalog::Inspection;
use hyper::StatusCode;
use protocol::http::HealthBody;

use super::Finding;
use super::files::unreadable;
use crate::client::{Kind, Server};
use crate::listen;
use crate::settings::Listening;

const SERVER: &str = "Server";
const PORT: &str = "Port";
const PAGE: &str = "Page";
/// A server that takes longer does not work.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn look(visit: &Inspection, listening: &Listening) -> Vec<Finding> {
    match visit.server() {
        Ok(None) => {
            vec![Finding::note(SERVER, "not running", "Start it with `liminal-builder`."), port(listening).await]
        }
        Ok(Some(_)) => match Server::find(visit) {
            Ok(server) => match tokio::time::timeout(ANSWER_WITHIN, running(&server)).await {
                Ok(findings) => findings,
                Err(_) => vec![hung(&server)],
            },
            Err(failure) => vec![Finding::note(SERVER, failure.message(), "Look again in a moment.")],
        },
        Err(error) => vec![unreadable(SERVER, &error)],
    }
}

async fn port(listening: &Listening) -> Finding {
    let address = match listening.address() {
        Ok(address) => address,
        Err(error) => return Finding::problem(PORT, format!("{error:#}"), "See `liminal-builder --help`."),
    };
    match listen::bind(address).await {
        Ok(_) if address.port() == 0 => Finding::ok(PORT, format!("one of {} that is free", address.ip())),
        Ok(_) => Finding::ok(PORT, format!("{address} is free")),
        Err(error) => {
            let message = format!("{error:#}");
            let (what, advice) = message.split_once('\n').unwrap_or((&message, "Start with another --port or --host."));
            Finding::problem(PORT, what, advice)
        }
    }
}

async fn running(server: &Server) -> Vec<Finding> {
    let health: HealthBody = match server.get("/api/health").await {
        Ok(health) => health,
        Err(_) => return vec![hung(server)],
    };
    let ours = env!("CARGO_PKG_VERSION");
    let mut findings = vec![match health.version == ours {
        true => Finding::ok(SERVER, format!("{} answers, version {ours}", server.address)),
        false => Finding::note(
            SERVER,
            format!("{} answers; it is version {}, this program is {ours}", server.address, health.version),
            "Restart it to use the other version.",
        ),
    }];
    findings.push(page(server).await);
    findings
}

/// What a browser would meet: the page with the secret, a closed door without, and the socket the page lives on.
async fn page(server: &Server) -> Finding {
    let restart = "Restart Liminal Builder, and open the page with `liminal-builder open`.";
    let with = match server.page(server.token.as_deref()).await {
        Ok(answer) => answer,
        Err(failure) => return Finding::problem(PAGE, failure.message(), restart),
    };
    if with.status == StatusCode::FORBIDDEN {
        return Finding::problem(PAGE, "the server does not take the secret in the file `token`", restart);
    }
    if with.status != StatusCode::OK || !with.content_type.starts_with("text/html") {
        return Finding::problem(PAGE, format!("the server answered with status {}", with.status), restart);
    }
    if let Err(failure) = server.window(Kind::View).await {
        return Finding::problem(PAGE, format!("the WebSocket was refused: {}", failure.message()), restart);
    }
    match server.page(None).await {
        Ok(without) if without.status == StatusCode::FORBIDDEN => {
            Finding::ok(PAGE, "opens with the secret, and not without; `liminal-builder open` shows it")
        }
        _ => Finding::note(
            PAGE,
            "opens for every program and every user of this machine",
            "Restart Liminal Builder without --no-auth, unless you mean it.",
        ),
    }
}

fn hung(server: &Server) -> Finding {
    Finding::problem(
        SERVER,
        format!("{} holds the data directory but does not answer", server.address),
        "Stop it (the file `lock` names its process) and start it again.",
    )
}
