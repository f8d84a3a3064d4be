//! One window's requests. Each is answered, in its outbox, by what it asked for or by an error.

use std::sync::Arc;

use catalog::SettingsChange;
use protocol::{ClientFrame, ClientMessage, InvalidMessage, ServerMessage, SessionId};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::ServiceError;
use crate::hub::{HubCore, Requester};
use crate::outbox::Outbox;
use crate::renderers;
use crate::session::{CancelReply, OpenCursor, SendReply, SessionCommand};
use crate::view;
use providers::catch_panic::{catch_panic, catch_panic_now};

/// Requests of one window that may be under way at once. One more waits, and with it the window's socket.
const REQUESTS_MAX: usize = 32;

/// Dropping it disconnects the window; nothing that runs is ended by that.
#[derive(Debug)]
pub struct Window {
    core: Arc<HubCore>,
    id: u64,
    outbox: Arc<Outbox>,
    under_way: Arc<Semaphore>,
}

impl Window {
    pub(crate) fn new(core: Arc<HubCore>, id: u64, outbox: Arc<Outbox>) -> Self {
        Self { core, id, outbox, under_way: Arc::new(Semaphore::new(REQUESTS_MAX)) }
    }

    /// Fires when the window must be closed because it does not read.
    pub fn gone(&self) -> &CancellationToken {
        self.outbox.gone()
    }

    /// Fires when the server ends and nothing more will come than what waits to be read.
    pub fn over(&self) -> &CancellationToken {
        self.outbox.over()
    }

    /// Answers a frame that is no request.
    pub fn reject(&self, invalid: InvalidMessage) {
        self.requester(invalid.request_id.clone(), None).refuse(invalid.into());
    }

    /// Starts a request. Returns when it is on its way; waits only while too many are.
    pub async fn request(&self, frame: ClientFrame) {
        let ClientFrame { request_id, message } = frame;
        let session = message.session_id().cloned();
        let requester = self.requester(request_id, session);
        let Ok(permit) = Arc::clone(&self.under_way).acquire_owned().await else { return };
        // Commands to sessions are queued here, one after the other, so that a window's requests keep their order in a
        // session: who sends and then cancels cancels that message. Whatever waits for the disk or an agent runs beside,
        // or it would hold up the socket and with it the next cancel.
        if let Err(error) = self.start(message, &requester, permit).await {
            requester.fail(&error);
        }
    }

    async fn start(
        &self,
        message: ClientMessage,
        requester: &Requester,
        permit: tokio::sync::OwnedSemaphorePermit,
    ) -> Result<(), ServiceError> {
        let core = &self.core;
        match message {
            ClientMessage::ProjectList {} => {
                requester.answer(ServerMessage::ProjectList { projects: core.catalog().projects() });
            }
            ClientMessage::SessionList { project_id } => {
                let sessions = core.sessions(&project_id)?;
                requester.answer(ServerMessage::SessionList { project_id, sessions });
            }
            ClientMessage::SessionOpen { session_id, since, epoch, journal_id } => {
                let since = since.map(|seq| OpenCursor { journal_id, epoch, seq });
                core.command(&session_id, SessionCommand::Open { requester: requester.clone(), since }).await?;
            }
            ClientMessage::SessionLeave { session_id } => {
                core.command_live(&session_id, SessionCommand::Leave { window: self.id }).await?;
                // After the command: an item that is pushed before the session handles it is then sent whole, not as a
                // continuation of what this window has dropped.
                self.outbox.forget(&session_id);
                requester.answer(ServerMessage::Ack {});
            }
            ClientMessage::SessionSend { session_id, content } => {
                // The session itself answers: with the start of the turn, or with why there is none.
                let reply = SendReply::Window(requester.with_permit(permit));
                core.command(&session_id, SessionCommand::Send { prompt: content.into(), reply }).await?;
            }
            ClientMessage::SessionCancel { session_id } => {
                // Unlike a message, a cancel opens no session: with no actor there is nothing to cancel, and an unknown
                // session is still an error.
                core.record(&session_id)?;
                let reply = CancelReply::Window(requester.with_permit(permit));
                if !core.command_live(&session_id, SessionCommand::Cancel { reply }).await? {
                    requester.answer(ServerMessage::Ack {});
                }
            }
            ClientMessage::SessionSetOption { session_id, option_id, value } => {
                let (reply, answer) = oneshot::channel();
                core.command(&session_id, SessionCommand::SetOption { option: option_id, value, reply }).await?;
                self.answer_beside(or_ended(answer), Some(ServerMessage::Ack {}), requester.clone(), permit);
            }
            ClientMessage::SessionPage { session_id, before, limit } => {
                core.command(&session_id, SessionCommand::Page { requester: requester.clone(), before, limit }).await?;
            }
            ClientMessage::SessionSeen { session_id } => {
                core.seen(&session_id).await?;
                requester.answer(ServerMessage::Ack {});
            }
            // Awaited here and not beside: a window that archives, restores and opens without waiting for answers must
            // find the session open in the end.
            change @ (ClientMessage::SessionArchive { .. }
            | ClientMessage::SessionRestore { .. }
            | ClientMessage::ProjectRemove { .. }
            | ClientMessage::ProjectRestore { .. }) => {
                let changed = catch_panic(run_slow(core, change, requester)).await;
                return changed.unwrap_or_else(|panic| Err(ServiceError::panic(&panic)));
            }
            slow => self.run_beside(slow, requester.clone(), permit),
        }
        Ok(())
    }

    fn run_beside(&self, message: ClientMessage, requester: Requester, permit: tokio::sync::OwnedSemaphorePermit) {
        let core = Arc::clone(&self.core);
        self.core.tasks().spawn(async move {
            let done = catch_panic(run_slow(&core, message, &requester)).await;
            if let Err(error) = done.unwrap_or_else(|panic| Err(ServiceError::panic(&panic))) {
                requester.fail(&error);
            }
            drop(permit);
        });
    }

    /// Waits beside for the answer of a session. The permit is held until then, which bounds what one window can queue.
    fn answer_beside<T: Send + 'static>(
        &self,
        answer: impl Future<Output = Result<T, ServiceError>> + Send + 'static,
        success: Option<ServerMessage>,
        requester: Requester,
        permit: tokio::sync::OwnedSemaphorePermit,
    ) {
        self.core.tasks().spawn(async move {
            match (answer.await, success) {
                (Ok(_), Some(success)) => requester.answer(success),
                (Ok(_), None) => {}
                (Err(error), _) => requester.fail(&error),
            }
            drop(permit);
        });
    }

    fn requester(&self, request_id: Option<String>, session: Option<SessionId>) -> Requester {
        Requester { window: self.id, outbox: Arc::clone(&self.outbox), request_id, session, _permit: None }
    }
}

/// The answer of a session, or that it ended without one.
async fn or_ended<T>(answer: oneshot::Receiver<Result<T, ServiceError>>) -> Result<T, ServiceError> {
    answer.await.unwrap_or(Err(ServiceError::SessionEnded))
}

impl Drop for Window {
    fn drop(&mut self) {
        self.core.disconnect(self.id);
    }
}

/// Requests that wait for the disk or for an agent.
async fn run_slow(core: &Arc<HubCore>, message: ClientMessage, requester: &Requester) -> Result<(), ServiceError> {
    match message {
        ClientMessage::ProjectAdd { path } => {
            let project = core.catalog().add_project(&path).await?;
            core.broadcast_as_answer(ServerMessage::ProjectAdded { project }, Some(requester));
        }
        ClientMessage::ProjectRemove { project_id } => {
            core.catalog().remove_project(&project_id).await?;
            // First off the list, then closed: no actor is started for a project that is not there, so none is missed.
            core.close_sessions_of(&project_id).await;
            core.broadcast_as_answer(ServerMessage::ProjectRemoved { project_id }, Some(requester));
        }
        ClientMessage::ProjectRestore { project_id } => {
            let project = core.catalog().restore_project(&project_id).await?;
            core.broadcast_as_answer(ServerMessage::ProjectAdded { project }, Some(requester));
        }
        ClientMessage::ProjectSetDefaults { project_id, defaults } => {
            if let Some(defaults) = &defaults {
                core.registry().get(&defaults.cli_type)?;
            }
            let project = core.catalog().set_defaults(&project_id, defaults).await?;
            core.broadcast_as_answer(ServerMessage::ProjectUpdated { project }, Some(requester));
        }
        ClientMessage::ProjectOpenIn { project_id, target } => {
            core.open_in(target, core.project(&project_id)?.path.into()).await?;
            requester.answer(ServerMessage::Ack {});
        }
        ClientMessage::SessionOpenIn { session_id, target } => {
            core.open_in(target, core.directory_of(&session_id)?).await?;
            requester.answer(ServerMessage::Ack {});
        }
        ClientMessage::SettingsGet {} => {
            requester.answer(ServerMessage::SettingsCurrent { settings: core.settings().await });
        }
        ClientMessage::SettingsSet { editor, terminal } => {
            core.catalog().change_settings(SettingsChange { editor, terminal }).await?;
            let settings = core.settings().await;
            core.broadcast_as_answer(ServerMessage::SettingsCurrent { settings }, Some(requester));
        }
        ClientMessage::SessionCreate { project_id, cli_type } => {
            core.create_session(&cli_type, &project_id, Some(requester)).await?;
        }
        ClientMessage::SessionArchive { session_id } => {
            core.catalog().archive(&session_id).await?;
            // Before it is broadcast: a window that opens the session after that is not answered by an actor that is ending.
            core.close_session(&session_id).await;
            core.broadcast_as_answer(ServerMessage::SessionArchived { session_id }, Some(requester));
        }
        ClientMessage::SessionRestore { session_id } => {
            core.catalog().restore(&session_id).await?;
            let session = core.summary(&session_id).ok_or_else(|| ServiceError::SessionNotFound(session_id.clone()))?;
            core.broadcast_as_answer(ServerMessage::SessionRestored { session_id, session }, Some(requester));
        }
        ClientMessage::SessionRename { session_id, title } => {
            let title = catalog::title_from(&title);
            core.catalog().set_title(&session_id, &title).await?;
            core.broadcast_as_answer(ServerMessage::SessionTitleUpdated { session_id, title }, Some(requester));
        }
        ClientMessage::SessionOutput { session_id, item_id } => {
            let cell = core.ask(&session_id, |reply| SessionCommand::Item { item: item_id.clone(), reply }).await?;
            // It takes as long as the output is long: neither the session nor any other task waits for it. The permit goes
            // into the closure, because a blocking thread goes on when this future is dropped.
            let permit = renderers::permit().await;
            let render = move || {
                let _permit = permit;
                catch_panic_now(|| view::whole_output(&cell.update()))
            };
            let rendered = core.tasks().spawn_blocking(render).await.map_err(|_| ServiceError::ShuttingDown)?;
            let html = rendered.map_err(|panic| ServiceError::panic(&panic))?;
            requester.answer(ServerMessage::SessionOutput { session_id, item_id, html });
        }
        ClientMessage::SessionReconnect { cli_type, session_id } => {
            match session_id {
                Some(id) => core.ask(&id, |reply| SessionCommand::Reconnect { reply }).await?,
                None => core.registry().get(&cli_type)?.reconnect().await?,
            }
            requester.answer(ServerMessage::Ack {});
        }
        ClientMessage::PathComplete { prefix } => {
            let catalog = core.catalog().clone();
            let asked = prefix.clone();
            let paths = tokio::task::spawn_blocking(move || catalog.complete_path(&asked)).await.unwrap_or_default();
            requester.answer(ServerMessage::PathCompletions { prefix, paths });
        }
        ClientMessage::PathRecent {} => {
            let directories = core.recent_directories().await;
            requester.answer(ServerMessage::PathRecents { directories });
        }
        ClientMessage::AgentList {} => {
            requester.answer(ServerMessage::AgentList { agents: core.agents().await });
        }
        message @ (ClientMessage::AgentConfig {}
        | ClientMessage::AgentSave { .. }
        | ClientMessage::AgentRemove { .. }
        | ClientMessage::AgentProbe { .. }
        | ClientMessage::AgentProbeDefinition { .. }) => core.serve_agents(message, requester).await?,
        ClientMessage::ProjectList {}
        | ClientMessage::SessionList { .. }
        | ClientMessage::SessionOpen { .. }
        | ClientMessage::SessionSend { .. }
        | ClientMessage::SessionCancel { .. }
        | ClientMessage::SessionSetOption { .. }
        | ClientMessage::SessionLeave { .. }
        | ClientMessage::SessionPage { .. }
        | ClientMessage::SessionSeen { .. } => {
            debug_assert!(false, "answered in `start`");
        }
    }
    Ok(())
}
