//! The way out of a provider: stream events in, upserts and turns out on the session's channel.
//!
//! What goes out is what the turn's processor says is due, as soon as the channel has room; what arrives while it has none
//! goes out together with the next.
//! Kept out: wires and processes. The session's task owns its outlet and calls [`Outlet::flush`] as one arm of its
//! `select!`.

use std::collections::VecDeque;
use std::time::SystemTime;

use protocol::stream::ResponseDone;
use protocol::{ErrorDetail, EventId, ResponseStatus, SessionId, StreamEvent, StreamPayload, TurnId};
use tokio::sync::mpsc;
use tokio::time::Instant;
use upserts::{Emission, Moment, UpsertConfig, UpsertProcessor};

use crate::provider::ProviderEvent;

/// Turns that may still be spoken of, the present one among them: sub-agents report after the end of the turn that started
/// them.
const ENDED_TURNS_KEPT: usize = 8;

/// The session no longer listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session was let go")]
pub struct Closed;

#[derive(Debug)]
pub struct Outlet {
    session: SessionId,
    sender: mpsc::Sender<ProviderEvent>,
    config: UpsertConfig,
    /// Oldest first; the last one is the present turn.
    turns: Vec<(TurnId, UpsertProcessor)>,
    /// Those among them that are no turns to anybody: their items go out, their beginnings and ends do not.
    asides: Vec<TurnId>,
    queue: VecDeque<ProviderEvent>,
    started: Instant,
}

impl Outlet {
    /// No turn brings more than so many bytes.
    pub fn new(session: SessionId, sender: mpsc::Sender<ProviderEvent>, turn_bytes_max: usize) -> Self {
        let config = UpsertConfig { turn_bytes_max, ..UpsertConfig::live() };
        let (turns, asides, queue) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { session, sender, config, turns, asides, queue, started: Instant::now() }
    }

    /// The agent goes on under another id; turns from now on carry it.
    pub fn rename(&mut self, session: SessionId) {
        self.session = session;
    }

    /// A turn begins; its events follow.
    pub fn begin(&mut self, turn: TurnId) {
        let processor = UpsertProcessor::new(self.config.clone(), self.session.clone(), turn.clone());
        self.turns.push((turn, processor));
        while self.turns.len() > ENDED_TURNS_KEPT {
            self.settle_oldest();
            self.collect();
            let (gone, _) = self.turns.remove(0);
            self.asides.retain(|aside| *aside != gone);
        }
    }

    /// Items follow that are part of no turn, such as a notice between turns. They are shown; nothing else changes.
    pub fn begin_aside(&mut self, turn: TurnId) {
        self.asides.push(turn.clone());
        self.begin(turn);
    }

    /// Something of the oldest turn may still be open, because it was begun late and never ended.
    fn settle_oldest(&mut self) {
        let now = self.now();
        let Some((turn, processor)) = self.turns.first_mut() else { return };
        if !processor.is_finished() {
            let done =
                ResponseDone { status: ResponseStatus::Completed, finish_reason: None, error: None, usage: None };
            let event = StreamEvent {
                event_id: EventId::generate(),
                timestamp: now.wall,
                turn_id: turn.clone(),
                session_id: self.session.clone(),
                payload: StreamPayload::ResponseDone(done),
            };
            processor.push(event, now);
        }
    }

    /// An event of a turn that was begun. One of a turn nobody knows is logged and passed over.
    pub fn push(&mut self, event: StreamEvent) {
        let now = self.now();
        match self.turns.iter_mut().rev().find(|(turn, _)| *turn == event.turn_id) {
            Some((_, processor)) => processor.push(event, now),
            None => tracing::warn!(turn = %event.turn_id, "event of an unknown turn"),
        }
    }

    /// Something beside the turn's text; it keeps its place behind what was pushed before it.
    pub fn say(&mut self, event: ProviderEvent) {
        self.collect();
        self.queue.push_back(event);
    }

    /// Ends every running turn with an error: what was received stays, nothing shows as running.
    pub fn abort(&mut self, error: &ErrorDetail) {
        let now = self.now();
        for (_, processor) in &mut self.turns {
            if !processor.is_finished() {
                processor.abort(error.clone(), now);
            }
        }
        self.collect();
    }

    /// The present turn has brought more than it may. It has ended here, and its agent does not know.
    pub fn is_full(&self) -> bool {
        self.turns.last().is_some_and(|(_, processor)| processor.is_full())
    }

    /// Events wait for room in the channel; a reader should pause when this is true.
    pub fn is_congested(&self) -> bool {
        self.queue.len() > crate::provider::EVENT_QUEUE_MAX
    }

    /// Sends whatever is due, for ever; ends only when nobody listens. Nothing is lost when the future is dropped.
    pub async fn flush(&mut self) -> Closed {
        loop {
            if self.queue.is_empty() {
                self.collect();
            }
            if self.queue.is_empty() {
                match self.turns.iter().filter_map(|(_, processor)| processor.deadline()).min() {
                    Some(due) => {
                        tokio::select! {
                            () = tokio::time::sleep_until(self.started + due) => {}
                            () = self.sender.closed() => return Closed,
                        }
                    }
                    None => {
                        self.sender.closed().await;
                        return Closed;
                    }
                }
                continue;
            }
            let Ok(permit) = self.sender.reserve().await else { return Closed };
            if let Some(event) = self.queue.pop_front() {
                permit.send(event);
            }
        }
    }

    /// Sends all that is held, due or not, and waits until the channel took it. For the end of a session.
    pub async fn drain(&mut self) -> Result<(), Closed> {
        self.collect();
        while let Some(event) = self.queue.front().cloned() {
            self.sender.send(event).await.map_err(|_| Closed)?;
            self.queue.pop_front();
        }
        Ok(())
    }

    fn collect(&mut self) {
        let now = self.now();
        for (turn, processor) in &mut self.turns {
            let is_aside = self.asides.contains(turn);
            let shown = processor.take(now).into_iter().filter(|one| !is_aside || matches!(one, Emission::Item(_)));
            self.queue.extend(shown.map(ProviderEvent::Emission));
        }
    }

    fn now(&self) -> Moment {
        Moment { wall: SystemTime::now().into(), elapsed: self.started.elapsed() }
    }
}
