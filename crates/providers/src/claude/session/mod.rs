//! One conversation: the actor that owns its process, its translation and its events.
//!
//! Comes in: commands of its handle and lines of the program. Goes out: events on the session's channel, and answers.
//! `turns` begins and ends turns, `lines` handles what the program writes, `options` sets mode and model,
//! `process_life` starts and ends the process, whose states are in `process_phase`. Kept out: other sessions.

mod handle;
mod lines;
mod options;
mod process_life;
mod process_phase;
mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use protocol::{AgentSessionId, Continuity, SessionFacts, SessionId, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub(super) use self::handle::{ClaudeCommand, ClaudeSessionHandle, ReplySender, SessionControl};
use self::options::ShownOptions;
use self::process_phase::{PendingRequest, ProcessEvent, ProcessPhase};
use self::turns::HeldMessage;
use super::translate::{LineSource, Translator};
use super::{ClaudeShared, facts};
use crate::catch_panic::catch_panic;
use crate::conversation::{Conditions, Conversation, ConversationLimits, SilenceReports};
use crate::emitter::Emitter;
use crate::lifecycle::Lifecycle;
use crate::provider::ProviderEvent;
use crate::unreadable::UnreadableLines;

/// A turn that was asked to stop and has not by then is stopped with its process. The user is promised five seconds.
const CANCEL_GRACE: Duration = Duration::from_secs(4);

/// What the program has of a session's history when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownHistory {
    /// There is none.
    None,
    Kept,
    /// There was one, and the program has nothing of it.
    Lost,
}

/// Whether the program remembers the conversation.
#[derive(Clone, Copy, Debug)]
struct AgentMemory {
    /// There is something that a new process ought to remember.
    has_history: bool,
    /// The program has nothing of it under the present id: the next process begins under another one.
    is_lost: bool,
    continuity: Continuity,
}

/// A session as it is opened.
#[derive(Debug)]
pub(super) struct SessionStart {
    pub(super) id: SessionId,
    pub(super) agent_id: AgentSessionId,
    pub(super) project_dir: PathBuf,
    pub(super) history: KnownHistory,
    /// What the user set before.
    pub(super) options: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct ClaudeSession {
    shared: Arc<ClaudeShared>,
    control: Arc<SessionControl>,
    /// Our id, on every event. It never changes.
    id: SessionId,
    agent_id: AgentSessionId,
    project_dir: PathBuf,
    emitter: Emitter,
    translator: Translator,
    conversation: Conversation<HeldMessage>,
    process: ProcessPhase,
    lifecycle: Lifecycle,
    /// The moment from which the lifecycle counts.
    opened_at: Instant,
    /// Who waits for the process to be up.
    waiting: Vec<ReplySender<()>>,
    shown_options: ShownOptions,
    memory: AgentMemory,
    unreadable: UnreadableLines,
}

impl ClaudeSession {
    pub(super) fn new(
        shared: Arc<ClaudeShared>,
        control: Arc<SessionControl>,
        start: SessionStart,
        events: mpsc::Sender<ProviderEvent>,
    ) -> Self {
        let SessionStart { id, agent_id, project_dir, history, options } = start;
        let limits = ConversationLimits {
            silence_after: shared.config.prompt_timeout,
            silence_reports: SilenceReports::Once,
            cancel_grace: CANCEL_GRACE,
            idle_after: shared.config.idle,
        };
        let is_lost = history == KnownHistory::Lost;
        let continuity = if is_lost { Continuity::Copy } else { Continuity::Dormant };
        Self {
            emitter: Emitter::new(id.clone(), events),
            translator: Translator::new(LineSource::Live, id.clone(), agent_id.clone()),
            shown_options: ShownOptions::new(options.get(facts::MODE).is_some_and(|mode| mode == facts::PLAN)),
            conversation: Conversation::new(limits, options, Instant::now()),
            process: ProcessPhase::None,
            lifecycle: Lifecycle::default(),
            opened_at: Instant::now(),
            waiting: Vec::new(),
            memory: AgentMemory { has_history: history != KnownHistory::None, is_lost, continuity },
            unreadable: UnreadableLines::default(),
            shared,
            control,
            id,
            agent_id,
            project_dir,
        }
    }

    /// However it ends, also by a panic of ours, its process is gone and it can be opened again.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<ClaudeCommand>) {
        if let Err(panic) = catch_panic(self.serve_commands(&mut commands)).await {
            self.abandon(&panic);
        }
        if let Err(panic) = catch_panic(self.shut_down()).await {
            tracing::error!(session = %self.agent_id, %panic, "a session could not be ended in order");
            self.end_process().await;
        }
        self.shared.session_ended(&self.control);
        // Whoever waits for the end of the session waits for this: its process is gone.
        drop(commands);
    }

    async fn serve_commands(&mut self, commands: &mut mpsc::Receiver<ClaudeCommand>) {
        let stop = self.control.stop.clone();
        loop {
            let deadline = self.deadline();
            let may_read = !self.emitter.is_congested();
            tokio::select! {
                biased; // A cancel must not wait behind a flood of output.
                () = stop.cancelled() => break,
                Some(command) = commands.recv() => self.on_command(command),
                relieved = self.emitter.relieve() => match relieved {
                    Ok(()) => {} // The program may be read again.
                    Err(_closed) => break,
                },
                event = self.process.next_event(may_read) => match event {
                    ProcessEvent::Started(started) => self.on_started(started),
                    ProcessEvent::Line(line) => self.on_line(line),
                    ProcessEvent::Exited(report) => self.on_exit(report).await,
                },
                () = sleep_until(deadline) => self.on_time(),
            }
        }
    }

    fn on_command(&mut self, command: ClaudeCommand) {
        match command {
            ClaudeCommand::Start { reply } => {
                self.waiting.push(reply);
                self.want_process();
            }
            ClaudeCommand::Send { prompt, reply } => {
                let turn = self.send(prompt);
                let _ = reply.send(turn);
            }
            ClaudeCommand::Cancel { reply } => {
                self.cancel();
                let _ = reply.send(Ok(()));
            }
            ClaudeCommand::SetOption { option, value, reply } => self.set_option(option, value, reply),
            ClaudeCommand::Reconnect { reply } => {
                self.waiting.push(reply);
                self.restart_on_request();
            }
        }
    }

    fn conditions(&self) -> Conditions {
        let is_running = self.process.running().is_some();
        // Silence while a tool runs is to be expected.
        Conditions { expects_output: is_running && !self.translator.tool_is_running(), can_evict: is_running }
    }

    /// Sends a request to the program. Without a process, or to one that has exited, nobody answers.
    fn request(&mut self, body: &Value, pending: PendingRequest) {
        let Some(process) = self.process.running_mut() else { return };
        if let Err(error) = process.request(body, pending) {
            tracing::warn!(session = %self.agent_id, error, "a request could not be sent to Claude Code");
        }
    }

    fn write(&self, line: String) {
        let Some(process) = self.process.running() else { return };
        if let Err(error) = process.write(line) {
            tracing::warn!(session = %self.agent_id, error, "a line could not be sent to Claude Code");
        }
    }

    fn emit_facts(&mut self, mut facts: SessionFacts) {
        if let Some(changed) = facts.options.take() {
            facts.options = Some(self.shown_options.merge(changed));
        }
        self.emitter.emit(ProviderEvent::Facts(facts));
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
