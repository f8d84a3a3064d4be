//! What is being read beside a session's loop.

use std::collections::HashMap;

use protocol::ItemId;
use providers::HistoryCursor;
use tokio::task::Id as CallId;

use super::branch::BranchRead;
use super::command::SessionCommand;
use crate::hub::Requester;

#[derive(Debug, Default)]
pub(super) struct Reads {
    pub(super) branch: BranchRead,
    pub(super) import: Import,
    /// The agent's files are compared when all of ours is recorded.
    pub(super) compares_later: bool,
    /// Pages of the journal, by the call that reads them.
    pub(super) pages: HashMap<CallId, PageFor>,
    /// Windows that left while a page was being read for them.
    left: Vec<u64>,
}

/// How far the history of an agent that the journal did not have is read.
#[derive(Debug, Default)]
pub(super) enum Import {
    #[default]
    None,
    /// It goes on there when what was read is recorded.
    Waiting(HistoryCursor),
    Reading,
}

/// Who wants a page of the journal, and for what.
#[derive(Debug)]
pub(super) enum PageFor {
    Open { requester: Requester },
    Since { requester: Requester, seq: u64 },
    Page { requester: Requester, before: ItemId, limit: usize },
}

impl PageFor {
    pub(super) fn requester(&self) -> &Requester {
        match self {
            Self::Open { requester } | Self::Since { requester, .. } | Self::Page { requester, .. } => requester,
        }
    }

    /// The request, to be handled again.
    pub(super) fn into_command(self) -> SessionCommand {
        match self {
            Self::Open { requester } | Self::Since { requester, .. } => SessionCommand::Open { requester, since: None },
            Self::Page { requester, before, limit } => SessionCommand::Page { requester, before, limit },
        }
    }
}

impl Reads {
    pub(super) fn are_running(&self) -> bool {
        !self.pages.is_empty()
    }

    /// More of the agent's history is to come.
    pub(super) fn is_importing(&self) -> bool {
        !matches!(self.import, Import::None)
    }

    /// The window wants nothing more of the session. What is read for it is sent first.
    pub(super) fn left(&mut self, window: u64) {
        if self.pages.values().any(|purpose| purpose.requester().window == window) {
            self.left.push(window);
        }
    }

    /// The window opened the session again.
    pub(super) fn came_back(&mut self, window: u64) {
        self.left.retain(|left| *left != window);
    }

    /// Whether a window whose page was just sent has left meanwhile.
    pub(super) fn has_left(&mut self, window: u64) -> bool {
        let is_reading = self.pages.values().any(|purpose| purpose.requester().window == window);
        !is_reading && self.left.extract_if(.., |left| *left == window).count() > 0
    }

    /// The requests behind reads that were dropped.
    pub(super) fn into_commands(self) -> impl Iterator<Item = SessionCommand> {
        self.pages.into_values().map(PageFor::into_command)
    }
}
