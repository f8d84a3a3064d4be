//! One window's requests. Each is answered, in its outbox, by what it asked for or by an error.

use std::sync::Arc;

use protocol::{ClientFrame, ClientMessage, InvalidMessage, ServerMessage, SessionId};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::error::ServiceError;
use crate::hub::{HubCore, Requester};
use crate::outbox::Outbox;
use crate::session::Command;
use crate::view;
use providers::fault::{contained, contained_now};

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

    /// Fires when the window must be let go because it does not read.
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

    /// Takes a request up. Returns when it is on its way; waits only while too many are.
    pub async fn request(&self, frame: ClientFrame) {
        let ClientFrame { request_id, message } = frame;
        let session = message.session_id().map(|id| self.core.current(id));
        let requester = self.requester(request_id, session);
        let Ok(permit) = Arc::clone(&self.under_way).acquire_owned().await else { return };
        // What keeps its order: commands to sessions are queued here, one after the other. What takes time runs beside.
        if let Err(error) = self.take_up(message, &requester, permit).await {
            requester.fail(&error);
        }
    }

    async fn take_up(
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
            ClientMessage::SessionOpen { session_id, since } => {
                core.command(&session_id, Command::Open { requester: requester.clone(), since }).await?;
            }
            ClientMessage::SessionLeave { session_id } => {
                if let Some(session) = core.live(&session_id) {
                    session.send(Command::Leave { window: self.id }).await.ok();
                }
                self.outbox.forget(&session_id);
                requester.answer(ServerMessage::Ack {});
            }
            ClientMessage::SessionPage { session_id, before, limit } => {
                core.command(&session_id, Command::Page { requester: requester.clone(), before, limit }).await?;
            }
            ClientMessage::SessionSeen { session_id } => {
                core.seen(&session_id).await?;
                requester.answer(ServerMessage::Ack {});
            }
            slow => self.run_beside(slow, requester.clone(), permit),
        }
        Ok(())
    }

    fn run_beside(&self, message: ClientMessage, requester: Requester, permit: tokio::sync::OwnedSemaphorePermit) {
        let core = Arc::clone(&self.core);
        self.core.tasks().spawn(async move {
            let served = contained(serve(&core, message, &requester)).await;
            if let Err(error) = served.unwrap_or_else(|fault| Err(ServiceError::fault(&fault))) {
                requester.fail(&error);
            }
            drop(permit);
        });
    }

    fn requester(&self, request_id: Option<String>, session: Option<SessionId>) -> Requester {
        Requester { window: self.id, outbox: Arc::clone(&self.outbox), request_id, session }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.core.disconnect(self.id);
    }
}

/// Requests that wait for the disk or for an agent.
async fn serve(core: &Arc<HubCore>, message: ClientMessage, requester: &Requester) -> Result<(), ServiceError> {
    match message {
        ClientMessage::ProjectAdd { path } => {
            let project = core.catalog().add_project(&path).await?;
            core.broadcast_as_answer(ServerMessage::ProjectAdded { project }, Some(requester));
        }
        ClientMessage::ProjectRemove { project_id } => {
            core.catalog().remove_project(&project_id).await?;
            core.broadcast_as_answer(ServerMessage::ProjectRemoved { project_id }, Some(requester));
        }
        ClientMessage::ProjectRestore { project_id } => {
            let project = core.catalog().restore_project(&project_id).await?;
            core.broadcast_as_answer(ServerMessage::ProjectAdded { project }, Some(requester));
        }
        ClientMessage::SessionCreate { project_id, cli_type } => {
            core.create_session(&cli_type, &project_id, Some(requester)).await?;
        }
        ClientMessage::SessionSend { session_id, content } => {
            let sender = Some(requester.clone());
            core.ask(&session_id, |reply| Command::Send { content, requester: sender, reply }).await?;
        }
        ClientMessage::SessionCancel { session_id } => {
            core.record(&session_id)?;
            if core.live(&session_id).is_none() {
                requester.answer(ServerMessage::Ack {});
                return Ok(());
            }
            let canceller = Some(requester.clone());
            core.ask_live(&session_id, |reply| Command::Cancel { requester: canceller, reply }).await?;
        }
        ClientMessage::SessionArchive { session_id } => {
            let session_id = core.current(&session_id);
            core.catalog().archive(&session_id).await?;
            core.broadcast_as_answer(
                ServerMessage::SessionArchived { session_id: session_id.clone() },
                Some(requester),
            );
            if let Some(session) = core.live(&session_id) {
                let (reply, ended) = tokio::sync::oneshot::channel();
                session.send(Command::Kill { end: true, reply }).await.ok();
                // Who waits must not keep it alive when everything ends.
                drop(session);
                ended.await.ok();
            }
        }
        ClientMessage::SessionRestore { session_id } => {
            let session_id = core.current(&session_id);
            core.catalog().restore(&session_id).await?;
            let session = core.summary(&session_id).ok_or_else(|| ServiceError::SessionNotFound(session_id.clone()))?;
            core.broadcast_as_answer(ServerMessage::SessionRestored { session_id, session }, Some(requester));
        }
        ClientMessage::SessionRename { session_id, title } => {
            let (session_id, title) = (core.current(&session_id), catalog::title_from(&title));
            core.catalog().set_title(&session_id, &title).await?;
            core.broadcast_as_answer(ServerMessage::SessionTitleUpdated { session_id, title }, Some(requester));
        }
        ClientMessage::SessionOutput { session_id, item_id } => {
            let cell = core.ask(&session_id, |reply| Command::Item { item: item_id.clone(), reply }).await?;
            // As long as the output is long: neither the session nor any other task waits for it.
            let render = move || contained_now(|| view::whole_output(&cell.update()));
            let rendered = core.tasks().spawn_blocking(render).await.map_err(|_| ServiceError::ShuttingDown)?;
            let html = rendered.map_err(|fault| ServiceError::fault(&fault))?;
            requester.answer(ServerMessage::SessionOutput { session_id, item_id, html });
        }
        ClientMessage::SessionSetOption { session_id, option_id, value } => {
            core.ask(&session_id, |reply| Command::SetOption { option: option_id, value, reply }).await?;
            requester.answer(ServerMessage::Ack {});
        }
        ClientMessage::SessionReconnect { cli_type, session_id } => {
            match session_id {
                Some(id) => core.ask(&id, |reply| Command::Reconnect { reply }).await?,
                None => core.registry().get(&cli_type)?.reconnect(None).await?,
            }
            requester.answer(ServerMessage::Ack {});
        }
        ClientMessage::PathComplete { prefix } => {
            let catalog = core.catalog().clone();
            let asked = prefix.clone();
            let paths = tokio::task::spawn_blocking(move || catalog.complete_path(&asked)).await.unwrap_or_default();
            requester.answer(ServerMessage::PathCompletions { prefix, paths });
        }
        ClientMessage::AgentList {} => {
            requester.answer(ServerMessage::AgentList { agents: core.agents().await });
        }
        ClientMessage::ProjectList {}
        | ClientMessage::SessionList { .. }
        | ClientMessage::SessionOpen { .. }
        | ClientMessage::SessionLeave { .. }
        | ClientMessage::SessionPage { .. }
        | ClientMessage::SessionSeen { .. } => {
            debug_assert!(false, "answered in `take_up`");
        }
    }
    Ok(())
}
