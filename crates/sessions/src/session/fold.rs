//! Stream events of the agent in, upserts and turn events out: one upsert processor per turn.
//!
//! What goes out is what the processors have due; the session asks again at [`Fold::deadline`]. Kept out: windows,
//! numbers, the transcript. A turn without a response (items between turns) gives items only.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use protocol::stream::ResponseDone;
use protocol::{EventId, ResponseStatus, SessionId, StreamEvent, StreamPayload, TurnId};
use tokio::time::Instant;
use upserts::{Emission, Moment, UpsertConfig, UpsertProcessor};

use crate::transcript::{SETTLED_KEPT, SETTLED_KEPT_EARLIER, TURNS_KEPT};

/// Turns that events may still belong to, the present one among them: sub-agents report after the end of the turn that
/// started them.
const TURNS_MAX: usize = TURNS_KEPT;

#[derive(Debug)]
pub(super) struct Fold {
    session_id: SessionId,
    config: UpsertConfig,
    /// Oldest first; the last one is the present turn.
    turns: VecDeque<FoldedTurn>,
    /// Emissions of turns that were evicted.
    evicted: Vec<Emission>,
    started: Instant,
}

#[derive(Debug)]
struct FoldedTurn {
    id: TurnId,
    processor: UpsertProcessor,
    response: Response,
}

/// What the agent has reported of a turn's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Response {
    /// Nothing: its items are shown, but it is no turn to anybody.
    None,
    Running,
    Ended,
}

impl Fold {
    /// No turn may bring more than so many bytes.
    pub(super) fn new(session_id: SessionId, turn_bytes_max: usize) -> Self {
        let config = UpsertConfig { turn_bytes_max, ..UpsertConfig::live() };
        Self { session_id, config, turns: VecDeque::new(), evicted: Vec::new(), started: Instant::now() }
    }

    /// A turn begins; its events follow.
    pub(super) fn begin(&mut self, id: TurnId) {
        let processor = UpsertProcessor::new(self.config.clone(), self.session_id.clone(), id.clone());
        self.turns.push_back(FoldedTurn { id, processor, response: Response::None });
        if self.turns.len() > TURNS_MAX
            && let Some(oldest) = self.turns.pop_front()
        {
            let settled = self.settle(oldest);
            self.evicted.extend(settled);
        }
    }

    /// Something of an evicted turn may still be open, because it began late and never ended.
    fn settle(&self, mut turn: FoldedTurn) -> Vec<Emission> {
        let now = self.now();
        if !turn.processor.is_finished() {
            let done =
                ResponseDone { status: ResponseStatus::Completed, finish_reason: None, error: None, usage: None };
            let event = StreamEvent {
                event_id: EventId::generate(),
                timestamp: now.wall,
                turn_id: turn.id.clone(),
                session_id: self.session_id.clone(),
                payload: StreamPayload::ResponseDone(done),
            };
            turn.processor.push(event, now);
        }
        turn.take(Moment { elapsed: Duration::MAX, ..now }).collect()
    }

    /// An event of a turn that has begun. One of an unknown turn is logged and dropped.
    pub(super) fn push(&mut self, event: StreamEvent) {
        let now = self.now();
        let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.id == event.turn_id) else {
            tracing::warn!(event = %event.event_id, turn = %event.turn_id, "event of an unknown turn");
            return;
        };
        match event.payload {
            StreamPayload::ResponseStart(_) => turn.response = Response::Running,
            StreamPayload::ResponseDone(_) | StreamPayload::ResponseError(_) => turn.response = Response::Ended,
            _ => {}
        }
        turn.processor.push(event, now);
    }

    /// What is due now, in order.
    pub(super) fn take_due(&mut self) -> Vec<Emission> {
        self.take(self.now())
    }

    /// All that is left, due or not: the agent sends nothing more.
    pub(super) fn take_all(&mut self) -> Vec<Emission> {
        self.take(Moment { elapsed: Duration::MAX, ..self.now() })
    }

    fn take(&mut self, at: Moment) -> Vec<Emission> {
        let mut emissions = std::mem::take(&mut self.evicted);
        let last = self.turns.len().saturating_sub(1);
        for (index, turn) in self.turns.iter_mut().enumerate() {
            emissions.extend(turn.take(at));
            // The transcript and the journal have what was taken.
            turn.processor.release_settled(if index == last { SETTLED_KEPT } else { SETTLED_KEPT_EARLIER });
        }
        emissions
    }

    /// When [`Self::take_due`] has something again though nothing comes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let due = self.turns.iter().filter_map(|turn| turn.processor.deadline()).min();
        due.and_then(|due| self.started.checked_add(due))
    }

    /// The present turn, if it brought more than a turn may and the agent has not ended it. Here it has ended.
    pub(super) fn flooded_turn(&self) -> Option<&TurnId> {
        let turn = self.turns.back().filter(|turn| turn.processor.is_full())?;
        (turn.response == Response::Running).then_some(&turn.id)
    }

    fn now(&self) -> Moment {
        Moment { wall: SystemTime::now().into(), elapsed: self.started.elapsed() }
    }
}

impl FoldedTurn {
    fn take(&mut self, at: Moment) -> impl Iterator<Item = Emission> + use<> {
        let has_response = self.response != Response::None;
        let emissions = self.processor.take(at).into_iter();
        emissions.filter(move |emission| has_response || matches!(emission, Emission::Item(_)))
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
