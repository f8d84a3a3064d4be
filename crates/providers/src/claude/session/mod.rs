//! One conversation: the actor that owns its process, its translation and its way out.
//!
//! Comes in: commands of the provider and lines of the program. Goes out: events on the session's channel, and answers.
//! What lines lead to is in `hear`, how the process comes and goes in `life`. Kept out: other sessions.

mod hear;
mod life;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agent_process::{ExitReport, LineError, LineReader, LineWriter, OutputLine, ProcessHandle};
use protocol::facts::ConfigOption;
use protocol::{
    AgentSessionId, AgentStatus, Continuity, ErrorCode, ErrorDetail, ResponseStatus, SessionFacts, Timestamp, TurnId,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::process::Started;
use super::translate::{Source, Translator};
use super::{NAME, Shared, facts, request};
use crate::fault::contained;
use crate::lifecycle::Lifecycle;
use crate::outlet::Outlet;
use crate::provider::{ProviderError, ProviderEvent, StatusReport};
use crate::unreadable::Unreadable;

/// A turn that was asked to stop and has not by then is stopped with its process. The user is promised five seconds.
const CANCEL_PATIENCE: Duration = Duration::from_secs(4);

/// For what a process said before it ended, and for its end after its last word. Its children may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(super) type Reply<T> = oneshot::Sender<Result<T, ProviderError>>;

#[derive(Debug)]
pub(super) enum Command {
    /// Starts the process and answers when it is up.
    Start {
        reply: Reply<()>,
    },
    Send {
        text: String,
        reply: Reply<TurnId>,
    },
    Cancel {
        reply: Reply<()>,
    },
    SetOption {
        option: String,
        value: String,
        reply: Reply<()>,
    },
    Reconnect {
        reply: Reply<()>,
    },
    /// Where its past is: the directory, and the id it had when it was opened.
    Record {
        reply: Reply<(PathBuf, AgentSessionId)>,
    },
}

/// The way to a session's actor. It lives until `stop` is cancelled or nobody listens to the session.
#[derive(Clone, Debug)]
pub(super) struct SessionHandle {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) stop: CancellationToken,
    status: watch::Sender<StatusReport>,
    alive: watch::Sender<bool>,
}

impl SessionHandle {
    pub(super) fn new(commands: mpsc::Sender<Command>) -> Self {
        Self {
            commands,
            stop: CancellationToken::new(),
            status: watch::Sender::new(StatusReport::default()),
            alive: watch::Sender::new(false),
        }
    }

    pub(super) fn status(&self) -> StatusReport {
        self.status.borrow().clone()
    }

    pub(super) fn is_alive(&self) -> bool {
        *self.alive.borrow()
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.status.borrow().status, AgentStatus::Disconnected | AgentStatus::Reconnecting)
    }
}

/// What is known of a session's past when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// Nothing was ever said.
    None,
    /// The program has it.
    Kept,
    /// Something was said, and the program has nothing of it.
    Lost,
}

/// A process that has answered our handshake.
#[derive(Debug)]
struct Running {
    stdin: LineWriter,
    handle: ProcessHandle,
}

/// A question the program has not answered yet.
#[derive(Debug)]
enum Pending {
    Option {
        option: String,
        value: String,
        reply: Option<Reply<()>>,
    },
    /// Whether the message of this turn was taken back before it began.
    DropMessage(TurnId),
    Interrupt,
}

#[derive(Debug)]
pub(super) struct Session {
    shared: Arc<Shared>,
    id: AgentSessionId,
    /// The id under which it was opened; pages of its past are of that file, also after `/clear`.
    recorded_as: AgentSessionId,
    project_dir: PathBuf,
    handle: SessionHandle,
    outlet: Outlet,
    translator: Translator,
    lifecycle: Lifecycle,
    born: Instant,
    /// When the present process came up, if the user had asked for it.
    restarted_at: Option<Instant>,
    process: Option<Running>,
    /// What it says; none once it has closed its output.
    output: Option<LineReader>,
    /// The process before it, on its way out with its tools. No other is started until it is gone.
    leaving: Option<ProcessHandle>,
    starting: JoinSet<Result<Started, ProviderError>>,
    /// Who waits for the process to be up.
    waiting: Vec<Reply<()>>,
    /// The message to send when it is, and has what the user chose: a turn that began before.
    unsent: Option<(TurnId, String)>,
    pending: HashMap<String, Pending>,
    asked: u64,
    options: Vec<ConfigOption>,
    /// What the user set, for the next process too.
    chosen: BTreeMap<String, String>,
    /// The present process refused none of it. One that did is asked again before the next message.
    is_restored: bool,
    /// The agent was told to plan by the user, not by itself.
    plans_for_user: bool,
    /// Something was said before, which a new process ought to remember.
    has_past: bool,
    continuity: Continuity,
    last_heard: Instant,
    silence_told: bool,
    idle_since: Option<Instant>,
    cancelling_until: Option<Instant>,
    unreadable: Unreadable,
    /// The turn brought more than a turn may and is over for everyone but the program.
    is_stopped: bool,
    /// The message that waits for the program to end that turn too.
    held: Option<(String, Reply<TurnId>)>,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: AgentSessionId,
        project_dir: PathBuf,
        handle: SessionHandle,
        events: mpsc::Sender<ProviderEvent>,
        past: Past,
        chosen: BTreeMap<String, String>,
    ) -> Self {
        let translator = Translator::new(Source::Live, shared.cli_type.clone(), id.clone());
        Self {
            outlet: Outlet::new(translator.session_id().clone(), events, shared.config.turn_bytes_max),
            translator,
            lifecycle: Lifecycle::default(),
            born: Instant::now(),
            restarted_at: None,
            process: None,
            output: None,
            leaving: None,
            starting: JoinSet::new(),
            waiting: Vec::new(),
            unsent: None,
            is_restored: true,
            pending: HashMap::new(),
            asked: 0,
            options: Vec::new(),
            plans_for_user: chosen.get(facts::MODE).is_some_and(|mode| mode == facts::PLAN),
            chosen,
            has_past: past != Past::None,
            continuity: if past == Past::Lost { Continuity::Copy } else { Continuity::Dormant },
            last_heard: Instant::now(),
            silence_told: false,
            idle_since: None,
            cancelling_until: None,
            unreadable: Unreadable::default(),
            is_stopped: false,
            held: None,
            shared,
            recorded_as: id.clone(),
            id,
            project_dir,
            handle,
        }
    }

    /// However it ends, also by a fault of ours, its process is gone and it can be opened again.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        if let Err(fault) = contained(self.live(&mut commands)).await {
            self.fall(&fault);
        }
        if let Err(fault) = contained(self.shut_down()).await {
            tracing::error!(session = %self.id, %fault, "a session could not be ended in order");
            self.end_process().await;
        }
        self.shared.ended(&self.id);
        // Whoever waits for the end of the session waits for this: its process is gone.
        drop(commands);
    }

    async fn live(&mut self, commands: &mut mpsc::Receiver<Command>) {
        let stop = self.handle.stop.clone();
        loop {
            let deadline = self.deadline();
            let may_read = !self.outlet.is_congested();
            let output_ended = self.output.is_none();
            tokio::select! {
                biased; // A cancel must not wait behind a flood of output.
                () = stop.cancelled() => break,
                Some(command) = commands.recv() => self.obey(command),
                _closed = self.outlet.flush() => break,
                Some(started) = self.starting.join_next() => match started {
                    Ok(started) => self.started(started),
                    Err(error) => self.started(Err(ProviderError::Internal(error.to_string()))),
                },
                line = next_line(&mut self.output), if may_read => self.hear(line),
                report = exited(&self.process, output_ended) => self.exited(report).await,
                () = sleep_until(deadline) => self.on_time(),
            }
            self.stop_flood();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Start { reply } => {
                self.waiting.push(reply);
                self.want_process();
            }
            Command::Send { text, reply } if self.is_stopped && self.held.is_none() => self.held = Some((text, reply)),
            Command::Send { text, reply } => {
                let sent = self.send(text);
                let _ = reply.send(sent);
            }
            Command::Cancel { reply } => {
                self.cancel();
                let _ = reply.send(Ok(()));
            }
            Command::SetOption { option, value, reply } => self.set_option(option, value, reply),
            Command::Reconnect { reply } => {
                self.waiting.push(reply);
                self.restart_by_hand();
            }
            Command::Record { reply } => {
                let _ = reply.send(Ok((self.project_dir.clone(), self.recorded_as.clone())));
            }
        }
    }

    /// Begins a turn. The message goes out now, or as soon as the process is up.
    fn send(&mut self, text: String) -> Result<TurnId, ProviderError> {
        if self.translator.turn().is_some() {
            return Err(ProviderError::TurnInProgress);
        }
        let status = self.handle.status();
        match status.status {
            AgentStatus::Disconnected => {
                return Err(ProviderError::Crashed { name: NAME.into(), detail: status.detail.unwrap_or_default() });
            }
            AgentStatus::Reconnecting => return Err(ProviderError::Unavailable { name: NAME.into() }),
            AgentStatus::Idle | AgentStatus::Starting | AgentStatus::Connected => {}
        }
        let uuid = Uuid::new_v4().to_string();
        let turn = TurnId::parse(&uuid).map_err(|error| ProviderError::Internal(error.to_string()))?;
        if self.process.is_some() && !self.is_restored {
            self.restore_options();
        }
        match &self.process {
            Some(process) if !self.is_switching() => {
                let line = request::user(self.id.as_str(), &uuid, &text);
                process
                    .stdin
                    .try_send(line)
                    .map_err(|error| ProviderError::Crashed { name: NAME.into(), detail: error.to_string() })?;
            }
            process => {
                let is_down = process.is_none();
                self.unsent = Some((turn.clone(), text.clone()));
                if is_down {
                    self.want_process();
                }
            }
        }
        self.outlet.begin(turn.clone());
        let said = self.translator.begin(turn.clone(), text, now());
        self.unreadable.turn_begins();
        self.tell(said);
        self.last_heard = Instant::now();
        self.idle_since = None;
        Ok(turn)
    }

    /// A turn that brought more than it may is cancelled, so that the program ends it too. What was sent meanwhile follows.
    fn stop_flood(&mut self) {
        let is_running = self.translator.turn().is_some();
        if is_running && !self.is_stopped && self.outlet.is_full() {
            tracing::warn!(session = %self.id, "a turn brought too much and is stopped");
            self.is_stopped = true;
            self.cancel();
        } else if !is_running && self.is_stopped {
            self.is_stopped = false;
            if let Some((text, reply)) = self.held.take() {
                let _ = reply.send(self.send(text));
            }
        }
    }

    /// Stops the running turn. A message the program has not begun with is taken back first, or it would begin after.
    fn cancel(&mut self) {
        let Some(turn) = self.translator.turn().cloned() else { return };
        if let Some((_, reply)) = self.held.take() {
            let _ = reply.send(Err(ProviderError::TurnInProgress));
        }
        if self.unsent.take().is_some() || self.process.is_none() {
            // Whether the process is set to what the user chose is not known: it is asked again before the next message.
            self.is_restored = !self.forget_restoring(|_| true) && self.is_restored;
            return self.close_turn(ResponseStatus::Cancelled);
        }
        if self.cancelling_until.is_some() {
            return;
        }
        self.cancelling_until = Some(Instant::now() + CANCEL_PATIENCE);
        self.translator.turn_is_cancelled();
        if !self.translator.turn_is_accepted() {
            let request = json!({"subtype": "cancel_async_message", "message_uuid": turn.as_str()});
            self.ask(&request, Pending::DropMessage(turn));
        }
        self.ask(&json!({"subtype": "interrupt"}), Pending::Interrupt);
    }

    fn set_option(&mut self, option: String, value: String, reply: Reply<()>) {
        let known = matches!(option.as_str(), facts::MODE | facts::MODEL);
        if !known {
            let message = format!("Claude Code has no option {option:?}");
            let _ = reply.send(Err(ProviderError::Protocol { name: NAME.into(), message }));
            return;
        }
        if self.process.is_none() {
            self.option_is(&option, &value);
            let _ = reply.send(Ok(()));
            return;
        }
        self.ask_option(option, value, Some(reply));
    }

    fn ask_option(&mut self, option: String, value: String, reply: Option<Reply<()>>) {
        let request = if option == facts::MODE {
            json!({"subtype": "set_permission_mode", "mode": value})
        } else {
            json!({"subtype": "set_model", "model": value})
        };
        self.forget_restoring(|earlier| earlier == option);
        self.ask(&request, Pending::Option { option, value, reply });
    }

    /// Gives up to wait for the answers about these options; says whether there were any.
    fn forget_restoring(&mut self, which: impl Fn(&str) -> bool) -> bool {
        let before = self.pending.len();
        self.pending
            .retain(|_, pending| !matches!(pending, Pending::Option { option, reply: None, .. } if which(option)));
        self.pending.len() < before
    }

    /// A new process is set to what the user chose, before it gets a message.
    fn restore_options(&mut self) {
        self.is_restored = true;
        for (option, value) in self.chosen.clone() {
            self.ask_option(option, value, None);
        }
    }

    fn is_switching(&self) -> bool {
        self.pending.values().any(|pending| matches!(pending, Pending::Option { .. }))
    }

    /// The message that waited, once the process is set to what the user chose.
    fn send_unsent(&mut self) {
        if !self.is_switching()
            && let Some((turn, text)) = self.unsent.take()
        {
            self.write(request::user(self.id.as_str(), turn.as_str(), &text));
        }
    }

    /// Who wants a plan must not get changes: no message goes to a process in another mode than the user chose.
    fn not_restored(&mut self, option: &str, value: &str, reason: &str) {
        tracing::warn!(session = %self.id, option, value, reason, "an option could not be set again");
        self.is_restored = false;
        if self.unsent.is_some() {
            let words =
                format!("the {option} {value:?} could not be set again: {reason}. Choose another one and send again.");
            self.end_turn_with_error(ErrorDetail::new(ErrorCode::SessionLoadFailed, words));
            self.idle_since = Some(Instant::now());
        }
        if let Some(known) = self.options.iter_mut().find(|known| known.id == option) {
            known.value = value.into();
            self.tell_facts(SessionFacts { options: Some(Vec::new()), ..SessionFacts::default() });
        }
    }

    /// An option has a new value; it is told, and kept for the next process.
    fn option_is(&mut self, option: &str, value: &str) {
        let before = self.chosen.insert(option.into(), value.into());
        if before.as_deref() != Some(value) {
            self.outlet.say(ProviderEvent::Chosen(self.chosen.clone()));
        }
        if option == facts::MODE {
            self.plans_for_user = value == facts::PLAN;
        }
        if let Some(known) = self.options.iter_mut().find(|known| known.id == option) {
            known.value = value.into();
            self.tell_facts(SessionFacts { options: Some(Vec::new()), ..SessionFacts::default() });
        }
    }

    /// Puts a question to the program. If it is gone, its end will answer.
    fn ask(&mut self, request: &Value, pending: Pending) {
        self.asked += 1;
        let id = format!("liminal-{}", self.asked);
        self.write(request::control(&id, request));
        self.pending.insert(id, pending);
    }

    fn write(&self, line: String) {
        let Some(process) = &self.process else { return };
        if let Err(error) = process.stdin.try_send(line) {
            tracing::warn!(session = %self.id, %error, "a line could not be sent to Claude Code");
        }
    }

    fn tell_facts(&mut self, mut facts: SessionFacts) {
        if let Some(changed) = facts.options.take() {
            for option in changed {
                match self.options.iter_mut().find(|known| known.id == option.id) {
                    Some(known) => *known = option,
                    None => self.options.push(option),
                }
            }
            facts.options = Some(self.options.clone());
        }
        self.outlet.say(ProviderEvent::Facts(facts));
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Cancel safe, like what it waits for.
async fn next_line(output: &mut Option<LineReader>) -> Result<Option<OutputLine>, LineError> {
    match output {
        Some(output) => output.next_line().await,
        None => std::future::pending().await,
    }
}

/// A process that has closed its output is of no more use; if it does not leave by itself it is ended.
async fn exited(process: &Option<Running>, output_ended: bool) -> ExitReport {
    match process {
        Some(process) if output_ended => match tokio::time::timeout(LAST_WORDS, process.handle.exited()).await {
            Ok(report) => report,
            Err(_) => process.handle.kill().await,
        },
        Some(process) => process.handle.exited().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
