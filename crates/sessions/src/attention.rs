//! Which session needs the user: the one rule set behind every window's glyphs. Pure.

use catalog::{Unseen as UnseenRecord, UnseenKind};
use protocol::{AgentStatus, Attention, Continuity, SessionState, Timestamp, TurnEvent, TurnStatus};

/// A reason is one short line.
const REASON_CHARACTERS_MAX: usize = 160;
/// Why a session wants the user whose turn was cancelled because the server stopped.
pub(crate) const STOPPED_WITH_SERVER: &str = "Stopped with Liminal Builder";

/// What is known of a session; the most urgent fact is what it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watch {
    turn_running: bool,
    loading: bool,
    /// A turn ended and nobody has looked since: an error with its message, or a plain end.
    unseen: Option<Unseen>,
    process: AgentStatus,
    /// Why the process was lost, in one line.
    loss: Option<String>,
    /// It is not lost: it does not stop.
    hangs: bool,
    continuity: Continuity,
}

/// Each with its line for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unseen {
    Error(String),
    Finished,
}

impl Watch {
    pub(crate) fn turn(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::TurnStarted { .. } => {
                self.turn_running = true;
                self.unseen = None;
            }
            TurnEvent::TurnComplete { status, .. } => {
                self.turn_running = false;
                self.unseen = (*status == TurnStatus::Completed).then_some(Unseen::Finished);
            }
            TurnEvent::TurnError { error_message, .. } => {
                self.turn_running = false;
                self.unseen = Some(Unseen::Error(short(&format!("Turn failed: {error_message}"))));
            }
        }
    }

    /// The turn that was just cancelled was so because the server stops: nobody has seen that yet.
    pub(crate) fn stopped_with_server(&mut self) {
        self.unseen = Some(Unseen::Error(STOPPED_WITH_SERVER.into()));
    }

    /// What nobody had seen when the session was last evicted.
    pub(crate) fn restore(&mut self, saved: Option<&UnseenRecord>) {
        self.unseen = saved.map(|saved| match saved.kind {
            UnseenKind::Finished => Unseen::Finished,
            UnseenKind::Error => Unseen::Error(saved.reason.clone().unwrap_or_default()),
        });
    }

    /// What the catalog saves of it. `before` is the state that shows now.
    pub(crate) fn to_save(&self, before: &SessionState, now: Timestamp) -> Option<UnseenRecord> {
        let kind = match self.unseen.as_ref()? {
            Unseen::Finished => UnseenKind::Finished,
            Unseen::Error(_) => UnseenKind::Error,
        };
        let SessionState { reason, since, .. } = self.state(before, now);
        Some(UnseenRecord { kind, reason, since: since.unwrap_or(now), extra: serde_json::Map::new() })
    }

    pub(crate) fn loading(&mut self, loading: bool) {
        self.loading = loading;
    }

    /// `detail` says why it was lost; its first line is what a sidebar has room for.
    pub(crate) fn process(&mut self, status: AgentStatus, detail: Option<&str>) {
        (self.process, self.hangs) = (status, false);
        self.loss = detail.map(short).filter(|line| !line.is_empty());
    }

    /// The process runs, and is out of reach for this session until it is restarted.
    pub(crate) fn hangs(&mut self, detail: Option<&str>) {
        self.process(AgentStatus::Disconnected, detail);
        self.hangs = true;
    }

    pub(crate) fn panicked(&mut self, message: String) {
        self.turn_running = false;
        self.loading = false;
        self.unseen = Some(Unseen::Error(message));
        self.process = AgentStatus::Idle;
        self.continuity = Continuity::Dormant;
    }

    pub(crate) fn continuity(&mut self, continuity: Continuity) {
        self.continuity = continuity;
    }

    /// Someone looked: an unread end or error has served its purpose.
    pub(crate) fn seen(&mut self) {
        self.unseen = None;
    }

    /// The state every window shows. `since` stays while the attention stays.
    pub(crate) fn state(&self, before: &SessionState, now: Timestamp) -> SessionState {
        let (attention, reason) = match (&self.unseen, self.process) {
            (Some(Unseen::Error(reason)), _) => (Attention::Error, Some(reason.clone())),
            (Some(Unseen::Finished), _) => (Attention::Finished, Some("Finished".to_string())),
            (None, AgentStatus::Disconnected) => (Attention::Disconnected, self.loss.clone()),
            (None, AgentStatus::Reconnecting) => (Attention::Reconnecting, self.loss.clone()),
            (None, AgentStatus::Starting) => (Attention::Starting, None),
            (None, AgentStatus::Idle | AgentStatus::Connected) if self.turn_running => (Attention::Working, None),
            (None, AgentStatus::Idle | AgentStatus::Connected) if self.loading => (Attention::Starting, None),
            (None, AgentStatus::Idle | AgentStatus::Connected) => (Attention::Idle, None),
        };
        let since = if before.attention == attention { before.since } else { Some(now) };
        let hangs = self.hangs && attention == Attention::Disconnected;
        SessionState { attention, reason, continuity: self.continuity, hangs, since }
    }
}

/// The state of a session for which nothing runs.
pub(crate) fn dormant(unseen: &UnseenRecord) -> SessionState {
    let mut watch = Watch::default();
    watch.restore(Some(unseen));
    SessionState { since: Some(unseen.since), ..watch.state(&SessionState::default(), unseen.since) }
}

/// The first line that is not blank, if it is not too long.
fn short(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(REASON_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{SessionId, TurnId};

    fn started() -> TurnEvent {
        TurnEvent::TurnStarted {
            turn_id: TurnId::parse("t").unwrap(),
            session_id: SessionId::parse("codex:1").unwrap(),
            model_id: String::new(),
            provider_id: String::new(),
            at: Timestamp::default(),
        }
    }
    fn complete(status: TurnStatus) -> TurnEvent {
        TurnEvent::TurnComplete {
            turn_id: TurnId::parse("t").unwrap(),
            session_id: SessionId::parse("codex:1").unwrap(),
            status,
            usage: None,
            at: Timestamp::default(),
        }
    }
    fn failed() -> TurnEvent {
        TurnEvent::TurnError {
            turn_id: TurnId::parse("t").unwrap(),
            session_id: SessionId::parse("codex:1").unwrap(),
            error_code: "X".into(),
            error_message: "rate limit".into(),
            at: Timestamp::default(),
        }
    }
    fn attention(watch: &Watch) -> Attention {
        watch.state(&SessionState::default(), Timestamp::default()).attention
    }

    #[test]
    fn a_finished_turn_stays_unread_until_someone_looks() {
        let mut watch = Watch::default();
        watch.turn(&started());
        assert_eq!(attention(&watch), Attention::Working);
        watch.turn(&complete(TurnStatus::Completed));
        assert_eq!(attention(&watch), Attention::Finished);
        watch.seen();
        assert_eq!(attention(&watch), Attention::Idle);
    }

    #[test]
    fn a_cancelled_turn_asks_for_nothing() {
        let mut watch = Watch::default();
        watch.turn(&started());
        watch.turn(&complete(TurnStatus::Cancelled));
        assert_eq!(attention(&watch), Attention::Idle);
    }

    #[test]
    fn a_failed_turn_shows_why_and_is_forgotten_when_the_next_one_starts() {
        let mut watch = Watch::default();
        watch.turn(&started());
        watch.turn(&failed());
        let state = watch.state(&SessionState::default(), Timestamp::default());
        assert_eq!((state.attention, state.reason.as_deref()), (Attention::Error, Some("Turn failed: rate limit")));
        watch.turn(&started());
        assert_eq!(attention(&watch), Attention::Working);
    }

    #[test]
    fn what_nobody_has_seen_is_the_same_after_a_restart() {
        let mut watch = Watch::default();
        watch.turn(&started());
        watch.turn(&failed());
        let shown = watch.state(&SessionState::default(), Timestamp::from_unix_ms(5));
        let saved = watch.to_save(&shown, Timestamp::from_unix_ms(9)).unwrap();
        assert_eq!(dormant(&saved), shown);
        let mut again = Watch::default();
        again.restore(Some(&saved));
        assert_eq!(again.state(&dormant(&saved), Timestamp::from_unix_ms(99)), shown);
        again.seen();
        assert_eq!(again.to_save(&shown, Timestamp::from_unix_ms(99)), None);
    }

    #[test]
    fn a_process_that_hangs_is_not_called_lost_and_a_restart_ends_that() {
        let mut watch = Watch::default();
        let state = |watch: &Watch| watch.state(&SessionState::default(), Timestamp::default());
        watch.hangs(Some("It hangs."));
        assert_eq!((state(&watch).attention, state(&watch).hangs), (Attention::Disconnected, true));
        assert_eq!(state(&watch).reason.as_deref(), Some("It hangs."));
        watch.turn(&failed());
        assert!(!state(&watch).hangs, "what shows is the error");
        watch.process(AgentStatus::Disconnected, None);
        watch.seen();
        assert_eq!((state(&watch).attention, state(&watch).hangs), (Attention::Disconnected, false));
    }

    #[test]
    fn a_lost_process_shows_unless_something_more_urgent_does() {
        let mut watch = Watch::default();
        watch.process(AgentStatus::Reconnecting, None);
        assert_eq!(attention(&watch), Attention::Reconnecting);
        watch.process(AgentStatus::Disconnected, Some("\nexit code 3: out of luck\nmore"));
        let state = watch.state(&SessionState::default(), Timestamp::default());
        assert_eq!(state.attention, Attention::Disconnected);
        assert_eq!(state.reason.as_deref(), Some("exit code 3: out of luck"));
        watch.turn(&failed());
        assert_eq!(attention(&watch), Attention::Error);
    }

    #[test]
    fn the_time_of_an_attention_is_when_it_began() {
        let mut watch = Watch::default();
        watch.turn(&started());
        let first = watch.state(&SessionState::default(), Timestamp::from_unix_ms(5));
        let later = watch.state(&first, Timestamp::from_unix_ms(9));
        assert_eq!(later.since, Some(Timestamp::from_unix_ms(5)));
    }
}
