//! What a session emits, as a hub would keep it: each item's last state, the turns, the facts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use protocol::{AgentStatus, Continuity, Origin, SessionFacts, StreamEvent, TurnEvent, TurnId, TurnStatus};
use providers::{AgentSession, EVENT_QUEUE_MAX, OpenedSession, ProviderError, ProviderEvent};
use tokio::sync::mpsc;
use upserts::{Emission, ItemBody, ItemUpdate, Moment, UpsertConfig, UpsertProcessor};

/// Generous: it only decides how long a failing test takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Listener {
    pub(crate) session: Arc<dyn AgentSession>,
    events: mpsc::Receiver<ProviderEvent>,
    pub(crate) items: Vec<ItemUpdate>,
    pub(crate) turns: Vec<TurnEvent>,
    pub(crate) facts: SessionFacts,
    pub(crate) all_facts: Vec<SessionFacts>,
    pub(crate) statuses: Vec<AgentStatus>,
    /// The states that were reported.
    pub(crate) details: Vec<String>,
    pub(crate) continuity: Vec<Continuity>,
    pub(crate) options: std::collections::BTreeMap<String, String>,
    /// The agent's present id for the session.
    pub(crate) agent_id: protocol::AgentSessionId,
    pub(crate) closed: bool,
    /// How many events came.
    pub(crate) received: usize,
    /// Of every turn that has begun; none before its first event.
    processors: BTreeMap<TurnId, Option<UpsertProcessor>>,
}

/// The value, unless it takes for ever.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s for {what}", DEADLINE.as_secs()),
    }
}

impl Listener {
    pub(crate) fn new(opened: OpenedSession) -> Self {
        Self {
            session: opened.session,
            events: opened.events,
            items: Vec::new(),
            turns: Vec::new(),
            facts: SessionFacts::default(),
            all_facts: Vec::new(),
            statuses: Vec::new(),
            details: Vec::new(),
            continuity: Vec::new(),
            options: Default::default(),
            agent_id: opened.agent_id,
            closed: false,
            received: 0,
            processors: BTreeMap::new(),
        }
    }

    pub(crate) async fn send(&self, text: &str) -> Result<TurnId, ProviderError> {
        self.session.send(text.into()).await
    }

    /// How many events wait to be received.
    pub(crate) fn waiting(&self) -> usize {
        self.events.len()
    }

    /// Listens until something can be seen.
    pub(crate) async fn until(&mut self, what: &str, seen: impl Fn(&Self) -> bool) {
        let listen = async {
            let mut batch = Vec::new();
            while !seen(self) {
                if self.events.recv_many(&mut batch, EVENT_QUEUE_MAX).await == 0 {
                    self.closed = true;
                    assert!(seen(self), "the session closed before {what}: {self:#?}");
                }
                batch.drain(..).for_each(|event| self.receive(event));
                self.take_emissions();
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

    /// Code and message of a turn's error.
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

    /// The messages of the agent in a turn.
    pub(crate) fn answers(&self, turn: &TurnId) -> Vec<String> {
        let answers = self.of(turn).into_iter().filter_map(|item| match &item.body {
            ItemBody::Message { text, origin: Origin::Agent } => Some(text.to_string()),
            _ => None,
        });
        answers.collect()
    }

    /// Everything but the user's own messages.
    pub(crate) fn text(&self) -> String {
        let of_user = |item: &&ItemUpdate| matches!(item.body, ItemBody::Message { origin: Origin::User, .. });
        let texts = self.items.iter().filter(|item| !of_user(item)).filter_map(|item| item.body.text());
        texts.map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn receive(&mut self, event: ProviderEvent) {
        self.received += 1;
        match event {
            ProviderEvent::TurnBegan(turn) => {
                self.processors.insert(turn, None);
            }
            ProviderEvent::Stream(event) => self.fold(event),
            ProviderEvent::Facts(facts) => {
                self.all_facts.push(facts.clone());
                self.facts.merge(facts);
            }
            ProviderEvent::Status(report) => {
                self.statuses.push(report.status);
                self.details.extend(report.detail);
            }
            ProviderEvent::Continuity(continuity) => self.continuity.push(continuity),
            ProviderEvent::Options(options) => self.options = options,
            ProviderEvent::AgentIdChanged(id) => self.agent_id = id,
        }
    }

    fn fold(&mut self, event: StreamEvent) {
        let now = self.now();
        let Some(processor) = self.processors.get_mut(&event.turn_id) else { panic!("the turn has not begun") };
        let processor = processor.get_or_insert_with(|| {
            UpsertProcessor::new(UpsertConfig::live(), event.session_id.clone(), event.turn_id.clone())
        });
        processor.push(event, now);
    }

    fn take_emissions(&mut self) {
        let now = self.now();
        for emission in self.processors.values_mut().flatten().flat_map(|processor| processor.take(now)) {
            match emission {
                Emission::Item(item) => match self.items.iter_mut().find(|known| known.item_id == item.item_id) {
                    Some(known) => *known = item,
                    None => self.items.push(item),
                },
                Emission::Turn(turn) => self.turns.push(turn),
            }
        }
    }

    /// Every event at a time at which all that waits is due.
    fn now(&self) -> Moment {
        Moment { wall: SystemTime::now().into(), elapsed: Duration::from_secs(self.received as u64) }
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
