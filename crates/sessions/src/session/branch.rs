//! The git branch of a session's directory. It is read beside the loop, because the directory may lie on a slow disk, when
//! a window opens the session and when a turn ends; windows get it when it differs.

use protocol::SessionFacts;

use super::{CallResult, SessionActor};

/// How a read of the branch stands. One at a time, however often it is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum BranchRead {
    #[default]
    Idle,
    Running,
    /// It may have changed since the read began: one more follows.
    RunningAndStale,
}

impl SessionActor {
    pub(super) fn read_branch(&mut self) {
        if self.reads.branch != BranchRead::Idle {
            self.reads.branch = BranchRead::RunningAndStale;
            return;
        }
        let Ok(directory) = self.hub.directory_of(&self.id) else { return };
        self.reads.branch = BranchRead::Running;
        self.calls.spawn(async move {
            let read = tokio::task::spawn_blocking(move || catalog::git_branch(&directory));
            CallResult::BranchRead(read.await.ok().flatten())
        });
    }

    pub(super) fn branch_was_read(&mut self, branch: Option<String>) {
        let is_stale = std::mem::take(&mut self.reads.branch) == BranchRead::RunningAndStale;
        // An empty name: there is none any more.
        let known = self.facts.branch.as_deref().unwrap_or_default();
        let branch = branch.unwrap_or_default();
        if branch != known {
            let facts = SessionFacts { branch: Some(branch), ..SessionFacts::default() };
            self.facts.merge(facts.clone());
            self.publish_facts(facts);
        }
        if is_stale {
            self.read_branch();
        }
    }
}
