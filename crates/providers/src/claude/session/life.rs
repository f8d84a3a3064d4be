//! How the process comes and goes: started when needed, ended when idle, started again when lost, stopped in order.

use std::time::Duration;

use agent_process::ExitReport;
use protocol::{AgentStatus, Continuity, ErrorCode, ErrorDetail, ResponseStatus, SessionFacts};
use serde_json::json;
use tokio::time::Instant;

use super::{LAST_WORDS, Pending, Running, Session, next_line};
use crate::claude::NAME;
use crate::claude::process::{self, STOP, Started};
use crate::claude::translate::{Source, Translator};
use crate::claude::{facts, owner, request};
use crate::fault::{Fault, contained_now};
use crate::lifecycle::{JUST_STARTED, Lifecycle, Loss};
use crate::provider::{ProviderError, ProviderEvent, StatusReport};

/// For a turn to end when its session does. A server that stops has interrupted it a second before, and what follows (last
/// words, the end of input, SIGTERM) must fit into the time it has.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(1);

impl Session {
    /// Starts a process unless one is there or on its way.
    pub(super) fn want_process(&mut self) {
        if self.lifecycle.want() {
            self.start();
        } else if self.lifecycle.is_connected() {
            self.reply_to_waiting(Ok(()));
        }
    }

    fn start(&mut self) {
        self.report_status();
        let shared = self.shared.clone();
        let (project_dir, id) = (self.project_dir.clone(), self.id.clone());
        let leaving = self.leaving.take();
        self.starting.spawn(async move {
            // Never two processes on one session: not ours, and nobody else's.
            if let Some(leaving) = leaving {
                leaving.stop(STOP).await;
            }
            owner::alone_with(&id, &shared.config).await.map_err(|pid| {
                let detail = format!("Another Claude Code has this session (process {pid}). End it and try again.");
                ProviderError::Handshake { name: NAME.into(), detail }
            })?;
            // What is on the disk decides, not what we remember: never a second conversation under one id.
            let resume = shared.file(&project_dir, &id).is_some();
            process::start(&shared.config, &project_dir, &id, resume).await
        });
    }

    pub(super) fn started(&mut self, started: Result<Started, ProviderError>) {
        match started {
            Ok(started) => self.connected(started),
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "Claude Code did not start");
                let told = detail_of(&error);
                self.end_turn_with_error(told.clone());
                self.lose(told.message, true, false);
                self.reply_to_waiting(Err(error));
            }
        }
    }

    fn connected(&mut self, Started { process, resumed, answer, early }: Started) {
        let (output, stdin, handle) = process.split();
        self.output = Some(output);
        self.process = Some(Running { stdin, handle });
        self.handle.alive.send_replace(true);
        self.translator.process_restarted();
        self.restarted_at = self.lifecycle.is_by_hand().then(Instant::now);
        self.lifecycle.connected();
        self.report_status();
        self.continuity_is(match (resumed, self.has_past) {
            // What it had lost once, it does not find again.
            (true, _) if self.continuity == Continuity::Copy => Continuity::Copy,
            (true, _) => Continuity::Resumed,
            // The program has lost what is shown.
            (false, true) => Continuity::Copy,
            (false, false) => Continuity::Live,
        });
        self.last_heard = Instant::now();
        let mut facts = facts::initialized(&answer);
        if self.chosen.contains_key(facts::MODEL) {
            facts.model = None;
        } else if let Some(model) = &facts.model {
            self.translator.model_is(model.clone());
        }
        let mode = facts.options.iter().flatten().find(|option| option.id == facts::MODE);
        self.plans_for_user |= mode.is_some_and(|mode| mode.value == facts::PLAN);
        self.tell_facts(facts);
        self.restore_options();
        for line in early {
            self.hear_line(line);
        }
        if self.unsent.is_none() {
            self.idle_since = Some(Instant::now());
        }
        self.send_unsent();
        self.reply_to_waiting(Ok(()));
    }

    pub(super) fn restart_by_hand(&mut self) {
        let just_started = self.restarted_at.is_some_and(|at| at.elapsed() < JUST_STARTED);
        if self.process.is_some() && just_started && self.translator.turn().is_none() {
            return self.reply_to_waiting(Ok(()));
        }
        if self.process.is_some() {
            self.end_turn_with_error(crash("The agent was restarted."));
            self.let_go();
        }
        if self.lifecycle.restart_by_hand() {
            self.start();
        }
    }

    pub(super) async fn exited(&mut self, report: ExitReport) {
        // What it said last is still in the pipe.
        let words = async {
            while self.output.is_some() {
                let line = next_line(&mut self.output).await;
                self.hear(line);
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, words).await;
        self.let_go();
        let peaceful = report.is_success() && self.translator.turn().is_none();
        tracing::info!(session = %self.id, %report, "Claude Code is gone");
        let message = ErrorCode::ProcessCrash.message(NAME);
        self.end_turn_with_error(crash(&format!("{message} ({report})")));
        self.lose(report.to_string(), true, peaceful);
    }

    /// A process that cannot be trusted any more. The next one begins with what is on the disk under our own id.
    pub(super) fn forsake(&mut self, why: &str) {
        self.end_turn_with_error(crash(why));
        self.let_go();
        self.translator = Translator::new(Source::Live, self.shared.cli_type.clone(), self.id.clone());
        self.lose(why.into(), true, false);
    }

    /// The process is no longer ours to talk to; what it answered not, it never will.
    fn let_go(&mut self) {
        let Some(process) = self.process.take() else { return };
        self.leaving = Some(process.handle);
        self.output = None;
        self.idle_since = None;
        self.handle.alive.send_replace(false);
        for (_, pending) in self.pending.drain() {
            if let Pending::Option { reply: Some(reply), .. } = pending {
                let _ = reply.send(Err(ProviderError::Unavailable { name: NAME.into() }));
            }
        }
    }

    fn lose(&mut self, detail: String, wanted: bool, peaceful: bool) {
        for report in self.lifecycle.lost(Loss { detail, wanted, peaceful }, self.born.elapsed()) {
            self.report(report);
        }
        if self.continuity != Continuity::Copy {
            self.continuity_is(Continuity::Dormant);
        }
    }

    /// Everything that was open ends with this; what was received stays.
    pub(super) fn end_turn_with_error(&mut self, error: ErrorDetail) {
        self.unsent = None;
        let was_cancelled = self.cancelling_until.take().is_some();
        if self.translator.turn().is_some() {
            if was_cancelled {
                // The user had stopped it. What happened to the program is told by its state.
                self.close_turn(ResponseStatus::Cancelled);
            }
            self.has_past = true;
            self.translator.abandon_turn();
            self.outlet.abort(&error);
            let silent_ms = std::mem::take(&mut self.silence_told).then_some(0);
            let facts = SessionFacts { silent_ms, activity: self.translator.at_rest(), ..SessionFacts::default() };
            if !facts.is_empty() {
                self.tell_facts(facts);
            }
        }
    }

    /// The next moment at which something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let restart = self.lifecycle.deadline().map(|due| self.born + due);
        let silence = self.silence_matters().then(|| self.last_heard + self.shared.config.prompt_timeout);
        let idle = self.idle_since.filter(|_| self.process.is_some()).zip(self.shared.config.idle);
        let idle = idle.map(|(since, idle)| since + idle);
        [restart, silence, idle, self.cancelling_until].into_iter().flatten().min()
    }

    /// Silence while a tool runs is to be expected, and is told only once.
    fn silence_matters(&self) -> bool {
        let told = self.silence_told;
        self.process.is_some() && self.translator.turn().is_some() && !self.translator.tool_is_running() && !told
    }

    pub(super) fn on_time(&mut self) {
        let now = Instant::now();
        if self.lifecycle.deadline().is_some_and(|due| self.born + due <= now) {
            return self.want_process();
        }
        if self.cancelling_until.is_some_and(|until| until <= now) {
            tracing::warn!(session = %self.id, "Claude Code did not stop its turn and is ended");
            self.close_turn(ResponseStatus::Cancelled);
            return self.end_quietly();
        }
        let silent = now.duration_since(self.last_heard);
        if self.silence_matters() && silent >= self.shared.config.prompt_timeout {
            self.silence_told = true;
            let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
            self.tell_facts(SessionFacts { silent_ms: Some(silent_ms), ..SessionFacts::default() });
        }
        let idle = self.idle_since.zip(self.shared.config.idle);
        if idle.is_some_and(|(since, idle)| since + idle <= now) {
            if self.translator.is_busy() {
                self.idle_since = Some(now);
            } else {
                tracing::info!(session = %self.id, "an idle Claude Code is ended");
                self.end_quietly();
            }
        }
    }

    /// Ends the process without a word; the next message resumes the conversation. Nobody waits for that end but the next
    /// process: one that hangs takes its time, and what has just ended is to be told at once.
    fn end_quietly(&mut self) {
        self.let_go();
        if let Some(leaving) = self.leaving.clone() {
            self.shared.tasks.spawn(async move { leaving.stop(STOP).await });
        }
        self.lose(String::new(), false, true);
    }

    /// A fault of ours: the turn ends with an error, the session is let go of and can be opened again. What broke may
    /// be what would tell so; then the end of the channel tells.
    pub(super) fn fall(&mut self, fault: &Fault) {
        tracing::error!(session = %self.id, %fault, "a session broke");
        let words = ErrorCode::InternalError.message("");
        let told = contained_now(|| {
            self.end_turn_with_error(ErrorDetail::new(ErrorCode::InternalError, words.clone()));
            self.lifecycle = Lifecycle::default();
            self.report(StatusReport {
                status: AgentStatus::Disconnected,
                detail: Some(words.clone()),
                ..StatusReport::default()
            });
        });
        if let Err(fault) = told {
            tracing::error!(session = %self.id, %fault, "a broken session could not be settled");
        }
        self.reply_to_waiting(Err(ProviderError::Internal(words)));
    }

    /// The process and the one before it.
    pub(super) async fn end_process(&mut self) {
        let process = self.process.take().map(|process| process.handle);
        for handle in [process, self.leaving.take()].into_iter().flatten() {
            handle.stop(STOP).await;
        }
    }

    /// The order in which nothing is lost: interrupt, the turn's end, the end of input, SIGTERM, SIGKILL.
    pub(super) async fn shut_down(&mut self) {
        self.starting.shutdown().await;
        self.unsent = None;
        if self.output.is_some() && self.translator.turn().is_some() {
            self.write(request::control("liminal-stop", &json!({"subtype": "interrupt"})));
            let end = async {
                while self.translator.turn().is_some() {
                    let line = next_line(&mut self.output).await;
                    self.hear(line);
                }
            };
            let _ = tokio::time::timeout(INTERRUPT_PATIENCE, end).await;
        }
        if self.translator.turn().is_some() {
            self.close_turn(ResponseStatus::Cancelled);
        }
        // Whoever still listens gets the end before the process is gone; nobody is waited for.
        let _ = tokio::time::timeout(LAST_WORDS, self.outlet.drain()).await;
        self.let_go();
        if let Some(leaving) = self.leaving.take() {
            leaving.stop(STOP).await;
        }
        self.reply_to_waiting(Err(ProviderError::SessionNotFound(self.id.clone())));
    }

    fn reply_to_waiting(&mut self, result: Result<(), ProviderError>) {
        for reply in self.waiting.drain(..) {
            let _ = reply.send(result.clone());
        }
    }

    fn continuity_is(&mut self, continuity: Continuity) {
        if self.continuity != continuity {
            self.continuity = continuity;
            self.outlet.say(ProviderEvent::Continuity(continuity));
        }
    }

    fn report_status(&mut self) {
        let report = self.lifecycle.report(self.born.elapsed());
        self.report(report);
    }

    fn report(&mut self, report: StatusReport) {
        self.handle.status.send_replace(report.clone());
        self.outlet.say(ProviderEvent::Status(report));
        self.shared.status_changed();
    }
}

/// The error and what is behind it, in one line.
fn detail_of(error: &ProviderError) -> ErrorDetail {
    let message = error.to_message();
    let words = match &message.detail {
        Some(detail) => format!("{}: {detail}", message.message),
        None => message.message,
    };
    ErrorDetail { code: error.code().as_str().into(), message: words }
}

fn crash(message: &str) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::ProcessCrash, message)
}
