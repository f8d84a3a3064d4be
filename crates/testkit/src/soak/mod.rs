//! A long bad day, in rounds: sessions talk to agents that crash, stall, flood and garble, windows come, go, lag and send
//! nonsense, the disk fills and frees, agents are killed, and at the end of each round the server is killed or stopped
//! with everything under way. What must hold throughout is asserted throughout; a seed makes the choices again.
//!
//! Two kinds of agents: `Steady` does odd things but lives, so every word of it is known and must be there, in every
//! window, after every restart. `Wild` also dies, so what is shown of a turn that failed is a beginning of its answer.

mod conversations;
mod prompts;
mod records;
mod resources;
mod visiting_windows;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use protocol::{CliType, ClientMessage, ProjectId, ServerMessage};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::conversations::Talk;
use self::records::RecordChecks;
use crate::{Builder, TestApp, programs};

/// How bad the day is.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Each ends with the end of the server.
    pub rounds: usize,
    /// On each of the two agents.
    pub sessions: usize,
    /// Of each session in each round.
    pub turns: usize,
}

/// What was lived through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    pub turns: usize,
    pub failed_turns: usize,
    pub cancelled_turns: usize,
    pub agents_killed: usize,
    pub windows: usize,
    pub requests_answered: usize,
    pub changes_confirmed: usize,
    pub changes_refused: usize,
    pub servers_killed: usize,
    pub servers_stopped: usize,
    pub peak_kib: u64,
    pub handles_most: usize,
}

const STEADY: &str = "steady";
const WILD: &str = "wild";
/// What a server may take beside the answers in its sessions, which it holds: windows that lag, agents that flood.
const PEAK_KIB_MAX: u64 = 384 * 1024;
/// And how many times the answers: as they are, as they are shown, on their way to windows, and the holes between.
const PEAK_TIMES_ANSWERS_MAX: u64 = 4;
/// Handles that may come and go in a round: an agent that is just starting, a file that is just written.
const HANDLES_SPARE: usize = 12;

fn answers_kib(talks: &[Talk]) -> u64 {
    talks.iter().map(Talk::answer_bytes).sum::<usize>() as u64 / 1024
}

/// # Panics
/// When something that must hold does not.
pub async fn run(plan: Plan) -> Report {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut report = Report::default();
    let builder = TestApp::builder();
    let home = builder.home().to_owned();
    prepare(&builder);
    let mut app = start(builder).await;
    let project = add_project(&app, &home).await;
    let mut records = RecordChecks::new(&home, &project);
    let mut talks = Vec::new();
    for round in 0..plan.rounds {
        println!("round {} of {}", round + 1, plan.rounds);
        records.check(&app).await;
        join_all(talks.iter_mut().map(|talk: &mut Talk| talk.resume(&app))).await;
        if round == 0 {
            for number in 0..plan.sessions * 2 {
                let agent = if number % 2 == 0 { STEADY } else { WILD };
                let cli_type = CliType::parse(agent).unwrap_or_else(|error| panic!("{error}"));
                talks.push(Talk::begin(&app, &project, cli_type, agent == WILD, random.u64(..)).await);
            }
        }
        // One turn each, so that the agents run before the disk is ever full and the handles are counted.
        take_turns(&mut talks, 1, &CancellationToken::new()).await;
        let handles_before = resources::handles(app.pid());
        bad_hour(&app, plan, &mut records, &mut talks, &mut random, &mut report).await;
        // Quiet: what windows brought is gone, and every window that stayed shows the same text.
        resources::until_handles(app.pid(), handles_before + HANDLES_SPARE).await;
        report.handles_most = report.handles_most.max(resources::handles(app.pid()));
        for talk in &mut talks {
            talk.compare(&app).await;
        }
        let (peak_kib, answers_kib) = (resources::peak_kib(app.pid()), answers_kib(&talks));
        report.peak_kib = report.peak_kib.max(peak_kib);
        println!("the server took at most {} MiB, of which {} MiB were answers", peak_kib / 1024, answers_kib / 1024);
        assert!(peak_kib < PEAK_KIB_MAX + PEAK_TIMES_ANSWERS_MAX * answers_kib, "the server took {peak_kib} KiB");
        end(&mut app, plan, &mut talks, &mut random, &mut report).await;
        resources::until_no_process_has(&home.join("agent-state")).await;
        app = start(app.again()).await;
    }
    records.check(&app).await;
    join_all(talks.iter_mut().map(|talk| talk.resume(&app))).await;
    for talk in &talks {
        talk.add_to(&mut report);
    }
    records.add_to(&mut report);
    app.interrupt();
    assert_eq!(app.ended().await.code(), Some(0));
    resources::until_no_process_has(&home.join("agent-state")).await;
    report
}

/// Everything at once, until every session has had its turns.
async fn bad_hour(
    app: &TestApp,
    plan: Plan,
    records: &mut RecordChecks,
    talks: &mut [Talk],
    random: &mut fastrand::Rng,
    report: &mut Report,
) {
    let over = CancellationToken::new();
    let sessions: Vec<_> = talks.iter().map(|talk| talk.session().clone()).collect();
    let wild_log = app.home().join("agent-state").join(WILD).join("log");
    let talking = take_turns(talks, plan.turns, &over);
    let mut seeds = std::iter::repeat_with(|| random.fork());
    let mut seed = || seeds.next().unwrap_or_default();
    let (_, reloads, asked, nonsense, deaf, killed, ()) = tokio::join!(
        talking,
        visiting_windows::reload(app, &sessions, seed(), &over),
        visiting_windows::ask(app, &sessions, seed(), &over),
        visiting_windows::send_nonsense(app, seed(), &over),
        visiting_windows::never_read(app, &sessions, &over),
        resources::kill_agents(&wild_log, seed(), &over),
        records.keep(app, seed(), &over),
    );
    report.windows += reloads + deaf;
    report.requests_answered += asked + nonsense;
    report.agents_killed += killed;
}

/// So many turns of each session, side by side; whoever is done looks on. Then it is over.
async fn take_turns(talks: &mut [Talk], count: usize, over: &CancellationToken) {
    let talking = AtomicUsize::new(talks.len());
    join_all(talks.iter_mut().map(async |talk| {
        talk.turns(count).await;
        if talking.fetch_sub(1, Ordering::Relaxed) == 1 {
            over.cancel();
        }
        talk.look_on(over).await;
    }))
    .await;
}

/// The server ends with every session in a turn and every window open: killed, or stopped.
async fn end(app: &mut TestApp, plan: Plan, talks: &mut Vec<Talk>, random: &mut fastrand::Rng, report: &mut Report) {
    let stop = CancellationToken::new();
    let mut talking = JoinSet::new();
    for mut talk in std::mem::take(talks) {
        let stop = stop.clone();
        talking.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = talk.turns(plan.turns * 100) => {}
            }
            talk
        });
    }
    tokio::time::sleep(std::time::Duration::from_millis(random.u64(20..600))).await;
    stop.cancel();
    while let Some(talk) = talking.join_next().await {
        talks.push(talk.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())));
    }
    talks.sort_by(|one, other| one.session().as_str().cmp(other.session().as_str()));
    if random.bool() {
        report.servers_killed += 1;
        app.kill().await;
    } else {
        report.servers_stopped += 1;
        app.signal(Signal::TERM);
        assert_eq!(app.ended().await.code(), Some(0));
    }
}

/// The agents are the scripted one, under two names.
fn prepare(builder: &Builder) {
    let agent = programs::scripted_agent().display().to_string();
    let server = |name: &str| {
        let state = builder.home().join("agent-state").join(name);
        std::fs::create_dir_all(&state).unwrap_or_else(|error| panic!("{error}"));
        serde_json::json!({"command": agent, "args": ["acp"], "env": {"SCRIPTED_AGENT_STATE": state}})
    };
    let agents = serde_json::json!({"agent_servers": {STEADY: server(STEADY), WILD: server(WILD)}});
    crate::make_private(&builder.data_dir());
    std::fs::write(builder.data_dir().join("agents.json"), agents.to_string())
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Once its disk is full it gets an error, not the signal that a limit sends.
async fn start(builder: Builder) -> TestApp {
    builder.through(&["sh", "-c", r#"trap "" XFSZ; exec "$0" "$@""#]).start().await
}

async fn add_project(app: &TestApp, home: &Path) -> ProjectId {
    let directory = home.join("project");
    std::fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{error}"));
    let path = directory.to_string_lossy().into_owned();
    match app.window().await.call(&ClientMessage::ProjectAdd { path }).await {
        ServerMessage::ProjectAdded { project } => project.id,
        other => panic!("{other:?}"),
    }
}
