//! The sending end of a session's channel, owned by the provider's task for that session.
//!
//! Comes in: turns, stream events and everything else a session reports. Goes out: the same, in order, as the channel
//! has room. Kept out: wires, processes, and any merging: the session folds what it receives.

use std::collections::VecDeque;
use std::time::SystemTime;

use protocol::stream::ResponseError;
use protocol::{ErrorDetail, EventId, SessionId, StreamEvent, StreamPayload, TurnId};
use tokio::sync::mpsc;

use crate::provider::{EVENT_QUEUE_MAX, ProviderEvent};

/// Turns that events may still belong to, the present one among them: sub-agents report after the end of the turn that
/// started them.
const TURNS_MAX: usize = 8;

/// Nobody receives the session's events any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody receives the session's events")]
pub struct Closed;

#[derive(Debug)]
pub struct Emitter {
    session_id: SessionId,
    sender: mpsc::Sender<ProviderEvent>,
    /// What the channel had no room for.
    queue: VecDeque<ProviderEvent>,
    /// Oldest first; the last one is the present turn.
    turns: VecDeque<OpenTurn>,
}

#[derive(Debug)]
struct OpenTurn {
    id: TurnId,
    /// It has begun as a response, and is no mere home of items between turns, which nobody has to end.
    has_response: bool,
    /// Something of it may still show as running.
    is_open: bool,
}

impl Emitter {
    pub fn new(session_id: SessionId, sender: mpsc::Sender<ProviderEvent>) -> Self {
        Self { session_id, sender, queue: VecDeque::new(), turns: VecDeque::new() }
    }

    /// A turn begins; its events follow.
    pub fn begin_turn(&mut self, id: TurnId) {
        self.turns.push_back(OpenTurn { id: id.clone(), has_response: false, is_open: false });
        if self.turns.len() > TURNS_MAX {
            self.turns.pop_front();
        }
        self.emit(ProviderEvent::TurnBegan(id));
    }

    /// An event of a turn that was begun. One of a turn that is not known any more is logged and dropped.
    pub fn stream(&mut self, event: StreamEvent) {
        let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.id == event.turn_id) else {
            tracing::warn!(event = %event.event_id, turn = %event.turn_id, "event of an unknown turn");
            return;
        };
        turn.has_response |= matches!(event.payload, StreamPayload::ResponseStart(_));
        turn.is_open = turn.has_response
            && !matches!(event.payload, StreamPayload::ResponseDone(_) | StreamPayload::ResponseError(_));
        self.emit(ProviderEvent::Stream(event));
    }

    pub fn emit(&mut self, event: ProviderEvent) {
        if self.queue.is_empty() {
            match self.sender.try_send(event) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(event) | mpsc::error::TrySendError::Closed(event)) => {
                    self.queue.push_back(event);
                }
            }
        } else {
            self.queue.push_back(event);
        }
    }

    /// Ends every turn that may still show something as running, with an error. What was received stays.
    pub fn abort_turns(&mut self, error: &ErrorDetail) {
        let open: Vec<_> = self.turns.iter().filter(|turn| turn.is_open).map(|turn| turn.id.clone()).collect();
        for turn_id in open {
            self.stream(StreamEvent {
                event_id: EventId::generate(),
                timestamp: SystemTime::now().into(),
                turn_id,
                session_id: self.session_id.clone(),
                payload: StreamPayload::ResponseError(ResponseError { error: error.clone() }),
            });
        }
    }

    /// More events wait for room in the channel than should: the agent is not read until this is false.
    pub fn is_congested(&self) -> bool {
        self.queue.len() > EVENT_QUEUE_MAX
    }

    /// Sends what waits, for ever; ends only when nobody receives. Cancel safe: dropping the future loses nothing.
    pub async fn flush(&mut self) -> Closed {
        loop {
            if self.queue.is_empty() {
                self.sender.closed().await;
                return Closed;
            }
            if let Err(closed) = self.send_first().await {
                return closed;
            }
        }
    }

    /// Like [`Self::flush`], but resolves when the channel was congested and is not any more: whoever stopped reading
    /// the agent has to look again, because nothing else may happen that wakes it. Cancel safe.
    pub async fn relieve(&mut self) -> Result<(), Closed> {
        if !self.is_congested() {
            return Err(self.flush().await);
        }
        while self.is_congested() {
            self.send_first().await?;
        }
        Ok(())
    }

    /// Cancel safe: the event leaves the queue only with room for it.
    async fn send_first(&mut self) -> Result<(), Closed> {
        let permit = self.sender.reserve().await.map_err(|_| Closed)?;
        if let Some(event) = self.queue.pop_front() {
            permit.send(event);
        }
        Ok(())
    }

    /// Sends all that waits. For the end of a session.
    pub async fn drain(&mut self) -> Result<(), Closed> {
        while !self.queue.is_empty() {
            self.send_first().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use protocol::{AgentSessionId, CliType, SessionFacts};

    use super::*;

    #[tokio::test]
    async fn a_reader_that_stopped_is_woken_when_the_channel_has_room_again() {
        let (sender, mut events) = mpsc::channel(1);
        let agent_id = AgentSessionId::parse("a").unwrap();
        let mut emitter = Emitter::new(SessionId::new(&CliType::parse("test").unwrap(), &agent_id), sender);
        let count = EVENT_QUEUE_MAX + 2;
        for _ in 0..count {
            emitter.emit(ProviderEvent::Facts(SessionFacts::default()));
        }
        assert!(emitter.is_congested());
        let receive = async {
            events.recv().await;
            events
        };
        let (relieved, mut events) = tokio::join!(emitter.relieve(), receive);
        assert_eq!((relieved, emitter.is_congested()), (Ok(()), false));
        let receive = async {
            for _ in 1..count {
                events.recv().await;
            }
            drop(events);
        };
        assert_eq!(tokio::join!(emitter.relieve(), receive).0, Err(Closed));
    }
}
