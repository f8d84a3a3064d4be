//! One session and the window that talks to it, with all its messages.

use protocol::{CliType, ClientMessage, Origin, ProjectId, ServerMessage, SessionId, TurnEvent, TurnStatus};
use tokio_util::sync::CancellationToken;

use super::prompts::{self, Scene};
use super::{Report, resources};
use crate::{Screen, TestApp, Window, within};

/// What a page is shown at least, when there is so much.
const PAGE_ITEMS: usize = 100;

#[derive(Debug)]
pub(super) struct Talk {
    session: SessionId,
    window: Window,
    screen: Screen,
    /// A second window that only looks; away while it does.
    watching: Option<(Window, Screen)>,
    is_wild: bool,
    random: fastrand::Rng,
    /// All turns whose end was received, in order, with their text as far as it is certain.
    history: Vec<ExpectedTurn>,
    /// The turn under way, if any.
    open: Option<Scene>,
    failed: usize,
    cancelled: usize,
}

#[derive(Debug)]
struct ExpectedTurn {
    prompt: String,
    text: String,
}

impl Talk {
    pub(super) async fn begin(app: &TestApp, project: &ProjectId, cli_type: CliType, is_wild: bool, seed: u64) -> Self {
        let mut window = app.window().await;
        let message = ClientMessage::SessionCreate { project_id: project.clone(), cli_type };
        let session = match window.call(&message).await {
            ServerMessage::SessionCreated { session, .. } => session.id,
            other => panic!("{other:?}"),
        };
        let screen = Screen::open(&mut window, &session).await;
        let mut watcher = app.view_window().await;
        let watched = Screen::open(&mut watcher, &session).await;
        let mut talk = Self {
            session,
            window,
            screen,
            watching: Some((watcher, watched)),
            is_wild,
            random: fastrand::Rng::with_seed(seed),
            history: Vec::new(),
            open: None,
            failed: 0,
            cancelled: 0,
        };
        // A session whose very first message is lost with its agent gets another id; these keep theirs.
        talk.turn(prompts::first()).await;
        talk
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// After a restart: everything that was ended is there, and what was under way may be.
    pub(super) async fn resume(&mut self, app: &TestApp) {
        self.window = app.window().await;
        self.screen = Screen::open(&mut self.window, &self.session).await;
        let mut watcher = app.view_window().await;
        let watched = Screen::open(&mut watcher, &self.session).await;
        self.watching = Some((watcher, watched));
        assert!(self.screen.is_settled(), "{}: nothing runs after a restart", self.session);
        let open = self.open.take();
        let shown = turns_on(&self.screen);
        if !self.is_wild {
            for (at, (turn, shown)) in self.history.iter().zip(&shown).enumerate() {
                assert_eq!(turn.prompt.trim_end(), shown.prompt.trim_end(), "{}: prompt {at}", self.session);
                self.assert_all(&shown.text, &turn.text, &format!("turn {at}"));
            }
            let extra = shown.len().checked_sub(self.history.len());
            let extra =
                extra.unwrap_or_else(|| panic!("{}: a turn is missing of {}", self.session, self.history.len()));
            assert!(extra <= usize::from(open.is_some()), "{}: {extra} turns that nobody asked for", self.session);
        }
        self.history = shown;
    }

    /// So many turns, to their ends.
    pub(super) async fn turns(&mut self, count: usize) {
        let mut watching = self.watching.take();
        let talk = async {
            for _ in 0..count {
                let scene =
                    if self.is_wild { prompts::wild(&mut self.random) } else { prompts::steady(&mut self.random) };
                self.turn(scene).await;
            }
        };
        let watch = async {
            while let Some((window, screen)) = &mut watching {
                screen.take(&window.next_frame().await);
            }
        };
        tokio::select! { () = talk => {} () = watch => {} }
        self.watching = watching;
    }

    /// Keeps reading while others are active: a window that is not read answers no pings, and is dropped.
    pub(super) async fn look_on(&mut self, over: &CancellationToken) {
        let mut watching = self.watching.take();
        let read = async {
            loop {
                self.screen.take(&self.window.next_frame().await);
            }
        };
        let watch = async {
            while let Some((window, screen)) = &mut watching {
                screen.take(&window.next_frame().await);
            }
        };
        tokio::select! { () = over.cancelled() => {} () = read => {} () = watch => {} }
        self.watching = watching;
    }

    async fn turn(&mut self, scene: Scene) {
        self.open = Some(scene.clone());
        let before = self.screen.answers().concat().len();
        self.send(&scene.prompt).await;
        if scene.is_held {
            let length = before + scene.text.len();
            self.until(&format!("{}: the text of {:?}", self.session, scene.steps()), |screen| {
                screen.answers().concat().len() == length || is_over(screen)
            })
            .await;
            if !is_over(&self.screen) {
                self.window.ask(&ClientMessage::SessionCancel { session_id: self.session.clone() }).await;
            }
        }
        self.until(&format!("{}: the end of {:?}", self.session, scene.steps()), is_over).await;
        let end = self.screen.turns.last().unwrap_or_else(|| panic!("a turn ended"));
        let text = self.screen.answers().concat().split_off(before);
        let prompt = scene.prompt.lines().next().unwrap_or_default();
        match end {
            TurnEvent::TurnError { .. } => self.failed += 1,
            TurnEvent::TurnComplete { status: TurnStatus::Cancelled, .. } => self.cancelled += 1,
            _ => self.assert_all(&text, &scene.text, prompt),
        }
        assert!(
            scene.text.starts_with(&text),
            "{}: only text of {prompt}: {}",
            self.session,
            apart(&text, &scene.text)
        );
        if !self.is_wild {
            self.assert_all(&text, &scene.text, prompt);
        }
        assert!(self.screen.is_settled(), "{}: a turn that ended leaves nothing open", self.session);
        self.history.push(ExpectedTurn { prompt: scene.prompt, text });
        self.open = None;
    }

    async fn until(&mut self, what: &str, is_it: impl Fn(&Screen) -> bool) {
        within(what, async {
            while !is_it(&self.screen) {
                self.screen.take(&self.window.next_frame().await);
            }
        })
        .await;
    }

    fn assert_all(&self, shown: &str, expected: &str, what: &str) {
        assert!(shown == expected, "{}: every word of {what}: {}", self.session, apart(shown, expected));
    }

    /// Until it is taken: an agent that was just lost is not there for a moment.
    async fn send(&mut self, content: &str) {
        let never = CancellationToken::new();
        self.screen.turns.clear();
        // Why it was not taken, one line for each reason in a row.
        let mut refusals = Vec::<String>::new();
        let taken = tokio::time::timeout(crate::DEADLINE, async {
            loop {
                let message = ClientMessage::SessionSend { session_id: self.session.clone(), content: content.into() };
                let id = self.window.ask(&message).await;
                loop {
                    let frame = self.window.next_frame().await;
                    self.screen.take(&frame);
                    let is_answer = frame.request_id.as_ref() == Some(&id);
                    match frame.message {
                        ServerMessage::Error(error) if is_answer => {
                            assert!(self.is_wild, "{}: {error:?}", self.session);
                            let reason = format!("{error:?}");
                            if refusals.last() != Some(&reason) {
                                refusals.push(reason);
                            }
                            break;
                        }
                        _ if is_answer || !self.screen.turns.is_empty() => return,
                        _ => {}
                    }
                }
                // The user would press Retry, and see what comes of it: one that comes late ends the next turn.
                let cli_type = self.session.cli_type();
                let session_id = Some(self.session.clone());
                let id = self.window.ask(&ClientMessage::SessionReconnect { cli_type, session_id }).await;
                loop {
                    let frame = self.window.next_frame().await;
                    self.screen.take(&frame);
                    if frame.request_id.as_ref() == Some(&id) {
                        break;
                    }
                }
                resources::pause(250, &never).await;
            }
        });
        let is_taken = taken.await.is_ok();
        assert!(is_taken, "{}: a message was never taken: {:#?}", self.session, refusals);
    }

    /// Every window shows the same: the one that talked, the one that looked on, and one that comes now.
    pub(super) async fn compare(&mut self, app: &TestApp) {
        let Some((mut watcher, mut watched)) = self.watching.take() else { panic!("{}: nobody watches", self.session) };
        let seq = self.screen.seq;
        watched.until(&mut watcher, "the last message", |screen| screen.seq >= seq).await;
        let texts = self.screen.texts();
        // A page begins with the newest items only.
        assert!(watched.items.len() >= texts.len().min(PAGE_ITEMS), "{}: items are missing", self.session);
        // And has what a tool printed as rendered sections, not as text.
        for item in watched.items.iter().filter(|item| item.origin.is_some()) {
            self.assert_all(
                &item.text,
                texts.get(item.id.as_str()).map_or("", String::as_str),
                "the window that looked on",
            );
        }
        self.watching = Some((watcher, watched));
        let mut late = app.window().await;
        let late = Screen::open(&mut late, &self.session).await;
        assert_eq!(late.texts(), texts, "{}: a window that comes late", self.session);
    }

    /// The length of all answers in it.
    pub(super) fn answer_bytes(&self) -> usize {
        self.history.iter().map(|turn| turn.text.len()).sum()
    }

    pub(super) fn add_to(&self, report: &mut Report) {
        report.turns += self.history.len();
        report.failed_turns += self.failed;
        report.cancelled_turns += self.cancelled;
    }
}

/// Where two texts part; they may be megabytes long.
fn apart(shown: &str, expected: &str) -> String {
    let common = shown.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
    let rest = |text: &str| {
        String::from_utf8_lossy(text.as_bytes().get(common..).unwrap_or_default()).chars().take(80).collect::<String>()
    };
    format!("after {common} bytes {:?} is shown, {:?} was expected", rest(shown), rest(expected))
}

fn is_over(screen: &Screen) -> bool {
    screen.turns.last().is_some_and(TurnEvent::is_end)
}

/// What a screen shows, as prompts and the answer after each.
fn turns_on(screen: &Screen) -> Vec<ExpectedTurn> {
    let mut turns: Vec<ExpectedTurn> = Vec::new();
    for item in &screen.items {
        match (item.origin, turns.last_mut()) {
            (Some(Origin::User), _) => turns.push(ExpectedTurn { prompt: item.text.clone(), text: String::new() }),
            (Some(Origin::Agent), Some(turn)) => turn.text += &item.text,
            _ => {}
        }
    }
    turns
}
