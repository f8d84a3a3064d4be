//! What a session says, as a hub would keep it: each item's last state, the turns, the facts.

use std::time::Duration;

use protocol::{AgentStatus, Continuity, Origin, SessionFacts, TurnEvent, TurnId, TurnStatus};
use providers::{ProviderEvent, ProviderSession};
use tokio::sync::mpsc;
use upserts::{Emission, ItemBody, ItemUpdate};

/// Generous: it only decides how long a failing test takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Listener {
    events: mpsc::Receiver<ProviderEvent>,
    pub(crate) items: Vec<ItemUpdate>,
    pub(crate) turns: Vec<TurnEvent>,
    pub(crate) facts: SessionFacts,
    pub(crate) all_facts: Vec<SessionFacts>,
    pub(crate) statuses: Vec<AgentStatus>,
    /// What was said of the states.
    pub(crate) details: Vec<String>,
    pub(crate) continuity: Vec<Continuity>,
    pub(crate) chosen: std::collections::BTreeMap<String, String>,
    pub(crate) id: protocol::AgentSessionId,
    pub(crate) closed: bool,
    /// How many events came.
    pub(crate) heard: usize,
}

/// The value, unless it takes for ever.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s for {what}", DEADLINE.as_secs()),
    }
}

impl Listener {
    pub(crate) fn new(session: ProviderSession) -> Self {
        Self {
            events: session.events,
            items: Vec::new(),
            turns: Vec::new(),
            facts: SessionFacts::default(),
            all_facts: Vec::new(),
            statuses: Vec::new(),
            details: Vec::new(),
            continuity: Vec::new(),
            chosen: Default::default(),
            id: session.id,
            closed: false,
            heard: 0,
        }
    }

    /// Listens until something can be seen.
    pub(crate) async fn until(&mut self, what: &str, seen: impl Fn(&Self) -> bool) {
        let listen = async {
            while !seen(self) {
                match self.events.recv().await {
                    Some(event) => self.hear(event),
                    None => {
                        self.closed = true;
                        assert!(seen(self), "the session closed before {what}: {self:#?}");
                    }
                }
            }
        };
        if tokio::time::timeout(DEADLINE, listen).await.is_err() {
            panic!("waited {} s for {what}: {self:#?}", DEADLINE.as_secs());
        }
    }

    pub(crate) async fn until_end_of(&mut self, turn: &TurnId) {
        self.until("the end of the turn", |listener| listener.end_of(turn).is_some()).await;
    }

    pub(crate) fn end_of(&self, turn: &TurnId) -> Option<&TurnEvent> {
        self.turns.iter().find(|event| event.is_end() && event.turn_id() == turn)
    }

    pub(crate) fn is_completed(&self, turn: &TurnId) -> bool {
        matches!(self.end_of(turn), Some(TurnEvent::TurnComplete { status: TurnStatus::Completed, .. }))
    }

    pub(crate) fn is_cancelled(&self, turn: &TurnId) -> bool {
        matches!(self.end_of(turn), Some(TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. }))
    }

    /// Code and words of a turn's error.
    pub(crate) fn error_of(&self, turn: &TurnId) -> Option<(String, String)> {
        match self.end_of(turn) {
            Some(TurnEvent::TurnError { error_code, error_message, .. }) => {
                Some((error_code.clone(), error_message.clone()))
            }
            _ => None,
        }
    }

    pub(crate) fn of(&self, turn: &TurnId) -> Vec<&ItemUpdate> {
        self.items.iter().filter(|item| item.turn_id == *turn).collect()
    }

    /// What the agent said in a turn.
    pub(crate) fn said(&self, turn: &TurnId) -> Vec<String> {
        let said = self.of(turn).into_iter().filter_map(|item| match &item.body {
            ItemBody::Message { text, origin: Origin::Agent } => Some(text.to_string()),
            _ => None,
        });
        said.collect()
    }

    /// Everything but the user's own words.
    pub(crate) fn text(&self) -> String {
        let of_user = |item: &&ItemUpdate| matches!(item.body, ItemBody::Message { origin: Origin::User, .. });
        let texts = self.items.iter().filter(|item| !of_user(item)).filter_map(|item| item.body.text());
        texts.map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn hear(&mut self, event: ProviderEvent) {
        self.heard += 1;
        match event {
            ProviderEvent::Emission(Emission::Item(item)) => {
                match self.items.iter_mut().find(|known| known.item_id == item.item_id) {
                    Some(known) => *known = item,
                    None => self.items.push(item),
                }
            }
            ProviderEvent::Emission(Emission::Turn(turn)) => self.turns.push(turn),
            ProviderEvent::Facts(facts) => {
                self.all_facts.push(facts.clone());
                self.facts.merge(facts);
            }
            ProviderEvent::Status(report) => {
                self.statuses.push(report.status);
                self.details.extend(report.detail);
            }
            ProviderEvent::Continuity(continuity) => self.continuity.push(continuity),
            ProviderEvent::Chosen(chosen) => self.chosen = chosen,
            ProviderEvent::IdChanged(id) => self.id = id,
        }
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let items = self.items.iter().map(|item| format!("{:?} {:?}", item.status, item.body));
        f.debug_struct("Listener")
            .field("items", &items.collect::<Vec<_>>())
            .field("turns", &self.turns)
            .field("statuses", &self.statuses)
            .field("continuity", &self.continuity)
            .finish_non_exhaustive()
    }
}
