//! Follows one session: shows each of its frames, as text for a person or unchanged for a script.

use protocol::{Attention, ServerMessage, SessionId, TurnEvent, TurnId, TurnStatus};

use super::failure::Failure;
use super::transcript::Transcript;
use crate::client::ReceivedFrame;
use crate::terminal::{Stream, Style};

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Completed,
    Cancelled,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Follower {
    session: SessionId,
    /// None: every frame goes out as JSON.
    transcript: Option<Transcript>,
    attention: Attention,
}

impl Follower {
    /// Shows the answer to what was just sent; all else goes beside it, or nowhere.
    pub(crate) fn of_answer(session: SessionId, as_json: bool, quiet: bool) -> Self {
        let transcript = if quiet { Transcript::answer_only() } else { Transcript::answer() };
        Self { session, transcript: (!as_json).then_some(transcript), attention: Attention::Idle }
    }

    /// Shows the messages of both sides.
    pub(crate) fn of_conversation(session: SessionId, as_json: bool) -> Self {
        Self { session, transcript: (!as_json).then(Transcript::conversation), attention: Attention::Idle }
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(crate) fn take(&mut self, received: &ReceivedFrame) -> Result<(), Failure> {
        let message = &received.frame.message;
        if session_of(message) != Some(&self.session) {
            return Ok(());
        }
        match &mut self.transcript {
            None => Stream::Out.line(&received.text)?,
            Some(transcript) => match message {
                ServerMessage::SessionHistory { entries, turns, more, .. } => {
                    transcript.history(entries, turns, *more)?
                }
                ServerMessage::SessionUpsert { payload, .. } => transcript.show(payload)?,
                ServerMessage::SessionTurn { payload, .. } => transcript.turn(payload)?,
                ServerMessage::SessionState { state, .. } => {
                    let before = std::mem::replace(&mut self.attention, state.attention);
                    if state.attention == Attention::NeedsPermission && before != Attention::NeedsPermission {
                        let asked = state.reason.as_deref().unwrap_or("a permission");
                        transcript.print(Style::Warn, &format!("Waits for you: {asked} (answer it in the page)"))?;
                    }
                }
                ServerMessage::SessionFacts { facts, .. } => {
                    facts.plan.as_deref().map_or(Ok(()), |plan| transcript.plan(plan))?;
                }
                ServerMessage::Error(error) => transcript.print(Style::Bad, &error.message)?,
                _ => {}
            },
        }
        Ok(())
    }

    /// A message of our own.
    pub(crate) fn print(&mut self, style: Style, text: &str) -> Result<(), Failure> {
        match &mut self.transcript {
            Some(transcript) => transcript.print(style, text),
            None => Ok(()),
        }
    }

    /// Ends the line that is being written.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.transcript.as_mut().map_or(Ok(()), Transcript::finish)
    }
}

/// How this turn of this session ended, if the message says so.
pub(crate) fn turn_end(message: &ServerMessage, session: &SessionId, turn: &TurnId) -> Option<Ended> {
    let ServerMessage::SessionTurn { payload, .. } = message else { return None };
    any_turn_end(message, session).filter(|_| payload.turn_id() == turn)
}

pub(crate) fn any_turn_end(message: &ServerMessage, session: &SessionId) -> Option<Ended> {
    match message {
        ServerMessage::SessionTurn { session_id, payload, .. } if session_id == session => match payload {
            TurnEvent::TurnStarted { .. } => None,
            TurnEvent::TurnComplete { status: TurnStatus::Completed, .. } => Some(Ended::Completed),
            TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. } => Some(Ended::Cancelled),
            TurnEvent::TurnError { .. } => Some(Ended::Failed),
        },
        _ => None,
    }
}

/// The session a message is about.
fn session_of(message: &ServerMessage) -> Option<&SessionId> {
    match message {
        ServerMessage::SessionHistory { session_id, .. }
        | ServerMessage::SessionUpsert { session_id, .. }
        | ServerMessage::SessionTurn { session_id, .. }
        | ServerMessage::SessionArchived { session_id }
        | ServerMessage::SessionRestored { session_id, .. }
        | ServerMessage::SessionTitleUpdated { session_id, .. }
        | ServerMessage::SessionState { session_id, .. }
        | ServerMessage::SessionFacts { session_id, .. } => Some(session_id),
        ServerMessage::AgentStatus { session_id, .. } => session_id.as_ref(),
        ServerMessage::Error(error) => error.session_id.as_ref(),
        _ => None,
    }
}
