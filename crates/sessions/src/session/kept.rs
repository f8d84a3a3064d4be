//! What the catalog keeps of a live session: what the user has switched, that its agent was given a message, how its last
//! turn ended, and whether somebody has seen that.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::TurnEnd;
use protocol::{TurnEvent, TurnStatus};

use super::{Done, Session, now};

/// What the user has switched, as far as that was heard here.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// None: it is as the catalog has it.
    pub(super) heard: Option<BTreeMap<String, String>>,
    unkept: bool,
    /// A write is on its way.
    keeping: bool,
}

impl Session {
    pub(super) fn switched(&mut self, options: BTreeMap<String, String>) {
        self.switches.heard = Some(options);
        self.switches.unkept = true;
        self.keep_switches();
    }

    /// One write after the other, so that the last one stays.
    pub(super) fn keep_switches(&mut self) {
        let Switches { heard: Some(options), unkept: true, keeping: false } = &self.switches else { return };
        if self.renaming {
            return;
        }
        let (hub, id, options) = (Arc::clone(&self.hub), self.id.clone(), options.clone());
        self.calls.spawn(async move {
            if let Err(error) = hub.catalog().set_options(&id, options).await {
                tracing::error!(session = %id, %error, "could not save what was switched");
            }
            Done::SwitchesKept
        });
        (self.switches.unkept, self.switches.keeping) = (false, true);
    }

    pub(super) fn switches_kept(&mut self) {
        self.switches.keeping = false;
        self.keep_switches();
    }

    /// A message was given under an id that the agent chose anew. Whoever sent it has that saved, but may have looked when
    /// it was still the old one.
    pub(super) fn keep_prompted(&mut self) {
        if !self.begun_anew || self.renaming || self.hub.record(&self.id).is_ok_and(|record| record.prompted) {
            return;
        }
        let (hub, id) = (Arc::clone(&self.hub), self.id.clone());
        self.calls.spawn(async move {
            hub.was_prompted(&id).await;
            Done::PromptedKept
        });
    }

    /// A turn ended. That, and that nobody has seen it yet, are on the disk within half a second.
    pub(super) fn keep_end(&mut self, event: &TurnEvent) {
        let mut used = None;
        let end = match event {
            TurnEvent::TurnStarted { .. } => return,
            TurnEvent::TurnComplete { status: TurnStatus::Completed, usage, .. } => {
                used = usage.as_ref();
                TurnEnd::Completed
            }
            TurnEvent::TurnComplete { status: TurnStatus::Cancelled, usage, .. } => {
                used = usage.as_ref();
                if self.hub.is_stopping() {
                    self.watch.stopped_with_server();
                }
                TurnEnd::Cancelled
            }
            TurnEvent::TurnError { error_code, error_message, .. } => TurnEnd::error(error_code, error_message),
        };
        let now = now();
        let unseen = self.watch.to_keep(&self.state, now);
        self.hub.catalog().turn_ended_with(&self.id, now, end, unseen, used);
    }

    /// The catalog knows what somebody still has to look at. Costs a comparison when nothing changed.
    pub(super) fn keep_unseen(&self) {
        self.hub.catalog().set_unseen(&self.id, self.watch.to_keep(&self.state, now()));
    }
}
