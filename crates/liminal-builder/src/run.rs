//! From start to stop: opens what is needed in order, and closes it in reverse.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use catalog::{Catalog, CatalogError, Opened};
use journal::{FailureKind, Journal, JournalError, OpenedJournal, SqliteJournal};
use server::{Access, Browsers, Hosts, Keys, Limits, Patience, Secret};
use sessions::{Hub, ServerFacts};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agents::FileAgents;
use crate::settings::{JournalSetting, Settings};
use crate::signals::Signals;
use crate::{browser, listen, start_message, stop_message};

/// The part of the stop time reserved for closing windows and files, when agents use the remaining time.
const CLOSING_TIME: Duration = Duration::from_millis(2_000);

/// `open_files` is how many files this process may have open.
pub(crate) async fn run(settings: &Settings, address: SocketAddr, open_files: u64) -> anyhow::Result<ExitCode> {
    let stop_time_max = Duration::from_millis(settings.files.stop_time_ms);
    let mut signals = Signals::listen(stop_time_max).context("could not listen for signals")?;
    let data_dir = settings.files.data_dir()?;
    let Opened { catalog, mut notices } = Catalog::open(&data_dir).map_err(explain)?;
    let journal = open_journal(settings, &data_dir, &mut notices)?;
    let keys = match settings.listening.no_auth {
        true => None,
        false => Some(keys(&catalog, settings.opening.open_by_file, &mut notices).map_err(explain)?),
    };
    let agents = FileAgents::open(&settings.agents, catalog.clone())?;
    let listener = listen::bind(address).await?;
    let (bound, base_url) = listen::base_url(&listener)?;
    catalog.announce(&base_url);
    let access = Access::new(Hosts::new(bound, settings.listening.allowed_hosts.clone()), keys.clone());
    let hub = Hub::start(catalog.clone(), Arc::clone(&journal), agents.registry(), facts(notices));
    hub.let_agents_change(Arc::new(agents.setup), agents.notices);

    // Runs concurrently with the start, which it must not slow down.
    drop(tokio::task::spawn_blocking(agent_process::end_leftovers));
    let shown =
        start_message::Shown { data_dir: &data_dir, base_url: &base_url, secret: keys.as_ref().map(Keys::secret) };
    print(&start_message::text(&shown, std::io::stdout().is_terminal(), &settings.files.default_data_dir()));
    if !bound.ip().is_loopback() && settings.listening.allowed_hosts.is_empty() {
        tracing::warn!("other machines can connect but are refused: name this one with --allowed-hosts");
    }
    if browser::is_wanted(&settings.opening) {
        let opened = match &keys {
            Some(keys) => keys
                .issue_ticket(&base_url)
                .map_err(explain)
                .and_then(|ticket| browser::open(&browser::address(&base_url, &ticket.path, ticket.file.as_deref()))),
            None => browser::open(&format!("{base_url}/")),
        };
        if let Err(error) = opened {
            tracing::warn!("{error:#}");
        }
    }

    let stop = CancellationToken::new();
    let limits = Limits::for_open_files(open_files);
    let serving = server::run(listener, access, Patience::default(), limits, hub.clone(), stop.clone());
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        () = &mut serving => return Err(anyhow!("the server ended unexpectedly")),
        _ = signals.next() => {}
    }
    print(&stop_message::text(&hub.working_sessions(), |session| hub.agent_name(&session.cli_type)));
    let agents_until = Instant::now() + stop_time_max.saturating_sub(CLOSING_TIME);
    let drained = async {
        let ended = hub.drain(agents_until).await;
        catalog.flush().await.map_err(explain)?;
        journal.close().await;
        let gone = agent_process::all_gone(agents_until).await;
        if ended && gone { Ok(ExitCode::SUCCESS) } else { Err(anyhow!("not every agent has ended; exiting anyway")) }
    };
    // Windows close when the hub has nothing more for them.
    stop.cancel();
    let ended = async { tokio::join!(drained, serving).0 };
    tokio::select! {
        ended = tokio::time::timeout(stop_time_max, ended) => match ended {
            Ok(ended) => ended,
            Err(_) => Err(anyhow!("could not stop everything within {stop_time_max:?}; exiting anyway")),
        },
        asked = signals.next() => Ok(asked.exit_code()),
    }
}

fn open_journal(settings: &Settings, data_dir: &Path, notices: &mut Vec<String>) -> anyhow::Result<Arc<dyn Journal>> {
    if settings.files.journal == JournalSetting::Off {
        return Ok(Arc::new(SqliteJournal::in_memory().map_err(explain_journal)?));
    }
    let OpenedJournal { journal, notices: more } = SqliteJournal::open(data_dir).map_err(explain_journal)?;
    notices.extend(more);
    Ok(Arc::new(journal))
}

fn facts(notices: Vec<String>) -> ServerFacts {
    ServerFacts {
        version: env!("CARGO_PKG_VERSION").into(),
        instance: uuid::Uuid::new_v4().to_string(),
        home: std::env::var("HOME").unwrap_or_default(),
        notices,
        has_display: browser::has_display(),
    }
}

fn keys(catalog: &Catalog, by_file: bool, notices: &mut Vec<String>) -> Result<Keys, CatalogError> {
    let secret = Secret::new(catalog.token(notices)?);
    let browsers = Browsers::open(catalog.clone(), secret.clone(), notices)?;
    Ok(Keys::new(secret, browsers, catalog.clone(), by_file))
}

/// Standard output may be closed, which is no reason to stop.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// What the user can do about a journal that cannot be opened. The file stays as it is.
fn explain_journal(error: JournalError) -> anyhow::Error {
    let advice = match &error {
        JournalError::NewerVersion { .. } => "Start the newer version",
        other => match other.kind() {
            FailureKind::DiskFull => "Free some space on that disk",
            FailureKind::ReadOnly => "Make the file and its directory writable for you",
            FailureKind::Locked => "Close the program that has it open",
            FailureKind::Damaged | FailureKind::Other => "Move the file away",
        },
    };
    anyhow!("{error}\n{advice}, or start with --journal off: then nothing that is said is kept on the disk.")
}

/// Adds the advice to the error.
fn explain(error: CatalogError) -> anyhow::Error {
    let advice = error.advice().map(|advice| format!("\n{advice}")).unwrap_or_default();
    let reason = format!("{:#}", anyhow::Error::new(error));
    anyhow!("{reason}{advice}")
}
