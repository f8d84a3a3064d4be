//! How the process starts and ends: started when needed, evicted when idle, restarted when lost, stopped in order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_process::ExitReport;
use protocol::{AgentStatus, Continuity, ErrorCode, ErrorDetail, ResponseStatus, SessionFacts};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::process_phase::{EXIT_DRAIN_TIMEOUT, ProcessPhase, RunningProcess};
use super::{AgentMemory, ClaudeSession};
use crate::catch_panic::{Panic, catch_panic_now};
use crate::claude::process::{self, STOP, Started};
use crate::claude::translate::{LineSource, Translator};
use crate::claude::{NAME, facts, new_agent_id, request, session_owner};
use crate::conversation::Due;
use crate::error::ProviderError;
use crate::lifecycle::{JUST_STARTED, Lifecycle, Loss};
use crate::provider::{ProviderEvent, StatusReport};

/// For a turn to end when its session does. A server that stops has interrupted it a second before, and what follows
/// (the last output, the end of input, SIGTERM) must fit into the time it has.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(1);

impl ClaudeSession {
    /// Starts a process unless one is there or starting.
    pub(super) fn want_process(&mut self) {
        if self.lifecycle.want() {
            self.start();
        } else if self.lifecycle.is_connected() {
            self.answer_waiting(&Ok(()));
        }
    }

    fn start(&mut self) {
        self.report_lifecycle();
        let shared = self.shared.clone();
        let (project_dir, id, agent_id) = (self.project_dir.clone(), self.id.clone(), self.agent_id.clone());
        let AgentMemory { has_history, is_lost, .. } = self.memory;
        let previous = self.process.take_ended();
        let mut task = JoinSet::new();
        task.spawn(async move {
            // Never two processes on one session: not ours, and nobody else's.
            if let Some(previous) = previous {
                previous.stop(STOP).await;
            }
            session_owner::wait_until_free(&agent_id, &shared.config).await.map_err(|pid| {
                let detail = format!("Another Claude Code has this session (process {pid}). End it and try again.");
                ProviderError::Handshake { name: NAME.into(), detail }
            })?;
            // What is on the disk decides, not what we remember: never a second conversation under one id.
            let is_there = shared.session_file(&project_dir, &id, &agent_id).is_some();
            let agent_id = if is_lost || !is_there && has_history { new_agent_id()? } else { agent_id };
            process::start(&shared.config, &project_dir, &agent_id, is_there && !is_lost).await
        });
        self.process = ProcessPhase::Starting(task);
    }

    pub(super) fn on_started(&mut self, started: Result<Box<Started>, ProviderError>) {
        match started {
            Ok(started) => self.on_connected(*started),
            Err(error) => {
                tracing::warn!(session = %self.agent_id, %error, "Claude Code did not start");
                self.process = ProcessPhase::None;
                let detail = detail_of(&error);
                self.end_turn_with_error(&detail);
                self.on_loss(detail.message, true, false);
                self.answer_waiting(&Err(error));
            }
        }
    }

    fn on_connected(&mut self, Started { process, agent_id, resumed, answer, early }: Started) {
        let (output, stdin, handle) = process.split();
        let restarted_at = self.lifecycle.is_restart_requested().then(Instant::now);
        self.process = ProcessPhase::Running(RunningProcess::new(output, stdin, handle, restarted_at));
        self.control.has_process.store(true, Ordering::Relaxed);
        self.translator.process_restarted();
        self.lifecycle.connected();
        self.report_lifecycle();
        self.continuity_is(match (resumed, self.memory.has_history) {
            // What it had lost once, it does not find again.
            _ if self.memory.continuity == Continuity::Copy => Continuity::Copy,
            (true, _) => Continuity::Resumed,
            // The program has lost what is shown.
            (false, true) => Continuity::Copy,
            (false, false) => Continuity::Live,
        });
        self.memory.is_lost = false;
        if agent_id != self.agent_id {
            self.translator.agent_id_is(agent_id.clone());
            self.change_agent_id(agent_id);
        }
        // A held message waited for the process; the silence counts from now on.
        self.conversation.on_output(Instant::now());
        let mut facts = facts::initialized(&answer);
        if self.conversation.options().contains_key(facts::MODEL) {
            facts.model = None;
        } else if let Some(model) = &facts.model {
            self.translator.model_is(model.clone());
        }
        let mode = facts.options.iter().flatten().find(|option| option.id == facts::MODE);
        self.shown_options.user_wants_plan |= mode.is_some_and(|mode| mode.value == facts::PLAN);
        self.emit_facts(facts);
        self.restore_options();
        for line in early {
            self.on_parsed_line(line);
        }
        self.conversation.on_use(Instant::now());
        self.deliver_held();
        self.answer_waiting(&Ok(()));
    }

    /// The user asks for a restart.
    pub(super) fn restart_on_request(&mut self) {
        if let Some(process) = self.process.running() {
            let is_new = process.restarted_at.is_some_and(|at| at.elapsed() < JUST_STARTED);
            if is_new && self.translator.turn().is_none() {
                return self.answer_waiting(&Ok(()));
            }
            self.end_turn_with_error(&crash("The agent was restarted."));
            self.release_process();
        }
        if self.lifecycle.request_restart() {
            self.start();
        }
    }

    pub(super) async fn on_exit(&mut self, report: ExitReport) {
        // What it wrote last is still in the pipe.
        let drain = async {
            while let Some(process) = self.process.running_mut().filter(|process| process.has_output()) {
                let line = process.next_line().await;
                self.on_line(line);
            }
        };
        let _ = tokio::time::timeout(EXIT_DRAIN_TIMEOUT, drain).await;
        self.release_process();
        let is_clean = report.is_success() && self.translator.turn().is_none();
        tracing::info!(session = %self.agent_id, %report, "Claude Code has exited");
        let message = ErrorCode::ProcessCrash.message(NAME);
        self.end_turn_with_error(&crash(&format!("{message} ({report})")));
        self.on_loss(report.to_string(), true, is_clean);
    }

    /// A process that cannot be trusted any more. The next one begins with what is on the disk under our own id.
    pub(super) fn abandon_process(&mut self, why: &str) {
        self.end_turn_with_error(&crash(why));
        self.release_process();
        self.translator = Translator::new(LineSource::Live, self.id.clone(), self.agent_id.clone());
        self.on_loss(why.into(), true, false);
    }

    /// The running process is not ours to write to any more; what it has not answered, it never will.
    fn release_process(&mut self) {
        let Some(requests) = self.process.end_running() else { return };
        self.conversation.agent_is_absent();
        self.control.has_process.store(false, Ordering::Relaxed);
        requests.fail(&ProviderError::Unavailable { name: NAME.into() });
    }

    fn on_loss(&mut self, detail: String, wanted: bool, clean_exit: bool) {
        for report in self.lifecycle.lost(Loss { detail, wanted, clean_exit }, self.opened_at.elapsed()) {
            self.report(report);
        }
        if self.memory.continuity != Continuity::Copy {
            self.continuity_is(Continuity::Dormant);
        }
    }

    /// The next moment at which something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let restart = self.lifecycle.deadline().map(|due| self.opened_at + due);
        [restart, self.conversation.deadline(self.conditions())].into_iter().flatten().min()
    }

    pub(super) fn on_time(&mut self) {
        let now = Instant::now();
        if self.lifecycle.deadline().is_some_and(|due| self.opened_at + due <= now) {
            return self.want_process();
        }
        while let Some(due) = self.conversation.on_time(now, self.conditions()) {
            match due {
                Due::CancelOverdue(_) => {
                    tracing::warn!(session = %self.agent_id, "Claude Code did not stop its turn and is ended");
                    self.close_turn(ResponseStatus::Cancelled);
                    return self.evict_process();
                }
                Due::Silence(silence) => {
                    let silent_ms = u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
                    self.emit_facts(SessionFacts { silent_ms: Some(silent_ms), ..SessionFacts::default() });
                }
                // It works in the background.
                Due::EvictIdle if self.translator.is_busy() => {}
                Due::EvictIdle => {
                    tracing::info!(session = %self.agent_id, "an idle Claude Code is ended");
                    return self.evict_process();
                }
            }
        }
    }

    /// Ends the process; the next message resumes the conversation. Nothing waits for that end but the next process:
    /// one that hangs takes its time, and what has just ended is reported at once.
    fn evict_process(&mut self) {
        self.release_process();
        if let ProcessPhase::Ended(handle) = &self.process {
            let handle = handle.clone();
            self.shared.tasks.spawn(async move { handle.stop(STOP).await });
        }
        self.on_loss(String::new(), false, true);
    }

    /// A panic of ours: the turn ends with an error, the session ends and can be opened again. What panicked may be
    /// what would report that; then the end of the channel reports it.
    pub(super) fn abandon(&mut self, panic: &Panic) {
        tracing::error!(session = %self.agent_id, %panic, "a session panicked");
        let message = ErrorCode::InternalError.message("");
        let settled = catch_panic_now(|| {
            self.end_turn_with_error(&ErrorDetail::new(ErrorCode::InternalError, message.clone()));
            self.lifecycle = Lifecycle::default();
            self.report(StatusReport {
                status: AgentStatus::Disconnected,
                detail: Some(message.clone()),
                ..StatusReport::default()
            });
        });
        if let Err(panic) = settled {
            tracing::error!(session = %self.agent_id, %panic, "an abandoned session could not be settled");
        }
        self.answer_waiting(&Err(ProviderError::Internal(message)));
    }

    /// The process and the one before it.
    pub(super) async fn end_process(&mut self) {
        self.release_process();
        if let Some(handle) = self.process.take_ended() {
            handle.stop(STOP).await;
        }
    }

    /// The order in which nothing is lost: interrupt, the turn's end, the end of input, SIGTERM, SIGKILL.
    pub(super) async fn shut_down(&mut self) {
        if let ProcessPhase::Starting(task) = &mut self.process {
            task.shutdown().await;
            self.process = ProcessPhase::None;
        }
        // A held message is not sent any more.
        let is_held = self.conversation.held().is_some();
        let is_readable = self.process.running().is_some_and(RunningProcess::has_output);
        if is_readable && !is_held && self.translator.turn().is_some() {
            self.write(request::control("liminal-stop", &json!({"subtype": "interrupt"})));
            let end = async {
                while self.translator.turn().is_some() {
                    let Some(process) = self.process.running_mut() else { return };
                    let line = process.next_line().await;
                    self.on_line(line);
                }
            };
            let _ = tokio::time::timeout(INTERRUPT_TIMEOUT, end).await;
        }
        if self.translator.turn().is_some() {
            self.close_turn(ResponseStatus::Cancelled);
        }
        // Whoever still receives gets the end before the process is gone; nobody is waited for.
        let _ = tokio::time::timeout(EXIT_DRAIN_TIMEOUT, self.emitter.drain()).await;
        self.end_process().await;
        self.answer_waiting(&Err(ProviderError::SessionNotFound(self.agent_id.clone())));
    }

    fn answer_waiting(&mut self, result: &Result<(), ProviderError>) {
        for reply in self.waiting.drain(..) {
            let _ = reply.send(result.clone());
        }
    }

    fn continuity_is(&mut self, continuity: Continuity) {
        if self.memory.continuity != continuity {
            self.memory.continuity = continuity;
            self.emitter.emit(ProviderEvent::Continuity(continuity));
        }
    }

    fn report_lifecycle(&mut self) {
        let report = self.lifecycle.report(self.opened_at.elapsed());
        self.report(report);
    }

    fn report(&mut self, report: StatusReport) {
        self.control.status.send_replace(report.clone());
        self.emitter.emit(ProviderEvent::Status(report));
        self.shared.status_changed();
    }
}

/// The error and what is behind it, in one line.
fn detail_of(error: &ProviderError) -> ErrorDetail {
    let message = error.to_message();
    let text = match &message.detail {
        Some(detail) => format!("{}: {detail}", message.message),
        None => message.message,
    };
    ErrorDetail { code: error.code().as_str().into(), message: text }
}

fn crash(message: &str) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::ProcessCrash, message)
}
