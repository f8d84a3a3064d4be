//! What the catalog keeps of a live session: what the user has switched, and that its agent was given a message.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Done, Session};

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
}
