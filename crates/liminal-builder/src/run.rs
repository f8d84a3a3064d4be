//! From start to stop: opens what is needed in order, and closes it in reverse.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use catalog::{Catalog, CatalogError, Opened};
use protocol::CliType;
use server::{Access, Hosts, Patience, Secret};
use sessions::{Hub, ServerFacts};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::settings::Settings;
use crate::signals::Signals;
use crate::{agents, browser, farewell, listen};

/// Of the time to stop, what is left for windows to close and for files when agents take all they may.
const CLOSING_TIME: Duration = Duration::from_millis(2_000);

pub(crate) async fn run(settings: &Settings, address: SocketAddr) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("could not listen for signals")?;
    let data_dir = settings.files.data_dir()?;
    let Opened { catalog, mut notices } = Catalog::open(&data_dir).map_err(explain)?;
    let secret = match settings.listening.no_auth {
        true => None,
        false => Some(Secret::new(catalog.token(&mut notices).map_err(explain)?)),
    };
    let registry = agents::registry(&settings.agents, catalog.dir(), catalog.agents_file(), &mut notices)?;
    let known: Vec<_> = registry.iter().map(|agent| (agent.cli_type().clone(), agent.name().to_owned())).collect();
    let names = |cli_type: &CliType| {
        let name = known.iter().find(|(known, _)| known == cli_type).map(|(_, name)| name.as_str());
        name.unwrap_or(cli_type.as_str()).to_owned()
    };
    let listener = listen::bind(address).await?;
    let (bound, base_url) = listen::base_url(&listener)?;
    catalog.announce(&base_url);
    let access = Access::new(Hosts::new(bound, settings.listening.allowed_hosts.clone()), secret);
    let hub = Hub::start(catalog.clone(), registry, facts(notices));

    // Beside the start, which it must not slow down.
    drop(tokio::task::spawn_blocking(agent_process::end_leftovers));
    greet(&data_dir, &link(&base_url, access.secret.as_ref()));
    if !bound.ip().is_loopback() && settings.listening.allowed_hosts.is_empty() {
        tracing::warn!("other machines can connect but are refused: name this one with --allowed-hosts");
    }
    if browser::is_wanted(&settings.opening) {
        let ticket = access.secret.is_some().then(|| access.ticket.issue());
        if let Err(error) = browser::open(&link(&base_url, ticket.as_ref())) {
            tracing::warn!("{error:#}");
        }
    }

    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(server::run(listener, access, Patience::default(), hub.clone(), stop.clone()));
    tokio::select! {
        () = &mut serving => return Err(anyhow!("the server ended unasked")),
        _ = signals.next() => {}
    }
    say(&farewell::words(&hub.working_sessions(), |session| names(&session.cli_type)));
    let stop_time_max = Duration::from_millis(settings.files.stop_time_ms);
    let agents_until = Instant::now() + stop_time_max.saturating_sub(CLOSING_TIME);
    let drained = async {
        let ended = hub.drain(agents_until).await;
        catalog.flush().await.map_err(explain)?;
        let gone = agent_process::all_gone(agents_until).await;
        if ended && gone { Ok(ExitCode::SUCCESS) } else { Err(anyhow!("not every agent has ended; left anyway")) }
    };
    // Windows close when the hub has nothing more for them.
    stop.cancel();
    let ended = async { tokio::join!(drained, serving).0 };
    tokio::select! {
        ended = tokio::time::timeout(stop_time_max, ended) => match ended {
            Ok(ended) => ended,
            Err(_) => Err(anyhow!("could not stop everything within {stop_time_max:?}; left anyway")),
        },
        asked = signals.next() => Ok(asked.exit_code()),
    }
}

fn facts(notices: Vec<String>) -> ServerFacts {
    ServerFacts {
        version: env!("CARGO_PKG_VERSION").into(),
        instance: uuid::Uuid::new_v4().to_string(),
        home: std::env::var("HOME").unwrap_or_default(),
        notices,
    }
}

fn link(base_url: &str, token: Option<&Secret>) -> String {
    match token {
        Some(token) => format!("{base_url}/?token={}", token.reveal()),
        None => format!("{base_url}/"),
    }
}

/// What, where, how to stop.
fn greet(data_dir: &Path, link: &str) {
    say(&format!(
        "Liminal Builder {}, data in {}\nOpen {link}\nPress Ctrl-C to stop.",
        env!("CARGO_PKG_VERSION"),
        data_dir.display()
    ));
}

/// Nobody may be listening: a closed standard output is no reason to stop.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Adds what to do to what went wrong.
fn explain(error: CatalogError) -> anyhow::Error {
    let advice = match &error {
        CatalogError::Locked { .. } => "\nUse that one, stop it, or start with another --data-dir.",
        CatalogError::Storage { .. } => {
            "\nCheck the data directory's permissions and disk, or choose another with --data-dir."
        }
        _ => "",
    };
    let reason = format!("{:#}", anyhow::Error::new(error));
    anyhow!("{reason}{advice}")
}
