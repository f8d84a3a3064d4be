//! A server with scripted agents and a project: the setup of the tests of sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use protocol::{
    BlockPatch, CliType, ClientMessage, ItemId, Origin, ProjectId, ServerFrame, ServerMessage, SessionId,
    SessionSummary, TurnEvent, TurnRecord, Upsert, UpsertBody, UpsertStatus,
};

use crate::{Builder, TestApp, Window, programs};

/// The agents are the scripted one on both wires: `codex` speaks ACP, `claude-code` Claude Code's wire.
#[derive(Debug)]
pub struct TestSetup {
    pub app: TestApp,
    pub project: ProjectId,
    state: PathBuf,
}

impl TestSetup {
    pub async fn start() -> Self {
        Self::start_with(|builder| builder).await
    }

    pub async fn start_with(more: impl FnOnce(Builder) -> Builder) -> Self {
        let builder = TestApp::builder();
        let state = builder.home().join("agent-state");
        std::fs::create_dir_all(&state).unwrap_or_else(|error| panic!("{error}"));
        let directory = builder.home().join("project");
        std::fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{error}"));
        let app = more(with_agents(builder, &state)).start().await;
        let mut window = app.window().await;
        let path = directory.to_string_lossy().into_owned();
        let project = match window.call(&ClientMessage::ProjectAdd { path }).await {
            ServerMessage::ProjectAdded { project } => project.id,
            other => panic!("{other:?}"),
        };
        Self { app, project, state }
    }

    /// A new server over the same home; the present one should have ended.
    pub async fn again(&self) -> Self {
        self.again_with(|builder| builder).await
    }

    pub async fn again_with(&self, more: impl FnOnce(Builder) -> Builder) -> Self {
        let app = more(with_agents(self.app.again(), &self.state)).start().await;
        Self { app, project: self.project.clone(), state: self.state.clone() }
    }

    /// Lets a prompt that waits for this gate go on.
    pub fn open_gate(&self, gate: &str) {
        let path = self.state.join(format!("gate-{gate}"));
        std::fs::write(path, "").unwrap_or_else(|error| panic!("{error}"));
    }

    /// Waits until `sessions.json` says that the agent has this message and works on it. That is written in two steps,
    /// perhaps after the agent's first answer has come.
    pub async fn until_kept(&self, message: &str) {
        let file = self.app.data_dir().join("sessions.json");
        let is_kept = || {
            let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).ok()?).ok()?;
            let mut records = kept["sessions"].as_array()?.iter();
            records.find(|record| record["unanswered"] == message && record["prompted"] == true).map(|_| ())
        };
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
        crate::within("the file to say what is worked on", async {
            while is_kept().is_none() {
                looks.tick().await;
            }
        })
        .await;
    }

    /// Waits until the journal has this text, which it may a tick after a window.
    pub async fn until_recorded(&self, text: &str) {
        let file = self.app.data_dir().join("journal.db");
        let is_recorded = || -> rusqlite::Result<bool> {
            let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
            let journal = rusqlite::Connection::open_with_flags(&file, flags)?;
            let sql = "SELECT EXISTS (SELECT 1 FROM open_text WHERE text = ?1
                UNION ALL SELECT 1 FROM item WHERE text = ?1)";
            journal.query_row(sql, [text], |row| row.get(0))
        };
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
        crate::within("the journal to have the text", async {
            while !is_recorded().unwrap_or(false) {
                looks.tick().await;
            }
        })
        .await;
    }

    /// What the ACP agent logs that it was asked, and by which processes.
    pub fn agent_log(&self) -> String {
        std::fs::read_to_string(self.state.join("log")).unwrap_or_default()
    }

    pub async fn create(&self, window: &mut Window, cli_type: &str) -> SessionSummary {
        let cli_type = CliType::parse(cli_type).unwrap_or_else(|error| panic!("{error}"));
        match window.call(&ClientMessage::SessionCreate { project_id: self.project.clone(), cli_type }).await {
            ServerMessage::SessionCreated { session, .. } => session,
            other => panic!("{other:?}"),
        }
    }

    /// A window with a new session of this agent on its screen.
    pub async fn begin(&self, cli_type: &str) -> (Window, SessionId, Screen) {
        let mut window = self.app.window().await;
        let session = self.create(&mut window, cli_type).await.id;
        let screen = Screen::open(&mut window, &session).await;
        (window, session, screen)
    }

    pub async fn sessions(&self, window: &mut Window) -> Vec<SessionSummary> {
        match window.call(&ClientMessage::SessionList { project_id: self.project.clone() }).await {
            ServerMessage::SessionList { sessions, .. } => sessions,
            other => panic!("{other:?}"),
        }
    }
}

fn with_agents(builder: Builder, state: &std::path::Path) -> Builder {
    let agent = programs::scripted_agent().display().to_string();
    builder
        .env("CODEX_ACP_CMD", format!("'{agent}' acp"))
        .env("CLAUDE_CMD", format!("'{agent}' claude"))
        .env("SCRIPTED_AGENT_STATE", state)
}

/// What one window shows of one session: the merge every client does.
#[derive(Debug)]
pub struct Screen {
    pub session: SessionId,
    /// In order of first appearance.
    pub items: Vec<Shown>,
    pub turns: Vec<TurnEvent>,
    /// The turns of the last snapshot.
    pub records: Vec<TurnRecord>,
    pub seq: u64,
    /// The numbers of the session's messages, as they came.
    pub seqs: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Shown {
    pub id: ItemId,
    pub status: UpsertStatus,
    pub origin: Option<Origin>,
    pub text: String,
    pub blocks: Vec<String>,
    pub last: Upsert,
}

impl Screen {
    pub fn new(session: &SessionId) -> Self {
        Self {
            session: session.clone(),
            items: Vec::new(),
            turns: Vec::new(),
            records: Vec::new(),
            seq: 0,
            seqs: Vec::new(),
        }
    }

    /// Opens the session in a window and shows what is there.
    pub async fn open(window: &mut Window, session: &SessionId) -> Self {
        let mut screen = Self::new(session);
        screen.reopen(window, None).await;
        screen
    }

    pub async fn reopen(&mut self, window: &mut Window, since: Option<u64>) {
        let answer = window
            .call(&ClientMessage::SessionOpen {
                session_id: self.session.clone(),
                since,
                epoch: None,
                journal_id: None,
            })
            .await;
        if let ServerMessage::SessionHistory { session_id, .. } = &answer {
            self.session = session_id.clone();
        }
        self.take(&ServerFrame { message: answer, request_id: None });
    }

    /// Sends, and shows everything up to the end of that turn.
    pub async fn converse(&mut self, window: &mut Window, content: &str) -> TurnEvent {
        self.send(window, content).await;
        self.until_turn_end(window).await
    }

    /// Sends, and shows everything up to the moment at which the agent has answered just this.
    pub async fn send_until_answer(&mut self, window: &mut Window, content: &str, answer: &str) {
        self.send(window, content).await;
        self.until(window, "the first text", |screen| screen.answers() == [answer]).await;
    }

    async fn send(&self, window: &mut Window, content: &str) {
        let message = ClientMessage::SessionSend { session_id: self.session.clone(), content: content.into() };
        window.ask(&message).await;
    }

    /// Shows everything up to the next end of a turn.
    pub async fn until_turn_end(&mut self, window: &mut Window) -> TurnEvent {
        let ended = |screen: &Self| screen.turns.iter().filter(|turn| turn.is_end()).count();
        let before = ended(self);
        self.until(window, "the turn to end", |screen| ended(screen) > before).await;
        self.turns.last().cloned().unwrap_or_else(|| panic!("a turn ended"))
    }

    /// # Panics
    /// When the server refuses something meanwhile, or it never comes.
    pub async fn until(&mut self, window: &mut Window, what: &str, is_it: impl Fn(&Self) -> bool) {
        crate::within(what, async {
            while !is_it(self) {
                let frame = window.next_frame().await;
                if let ServerMessage::Error(error) = &frame.message {
                    panic!("while waiting for {what}: {error:?}");
                }
                self.take(&frame);
            }
        })
        .await;
    }

    pub fn take(&mut self, frame: &ServerFrame) {
        match &frame.message {
            ServerMessage::SessionHistory { session_id, entries, seq, since, turns, .. }
                if *session_id == self.session =>
            {
                if since.is_none() {
                    self.items.clear();
                }
                entries.iter().for_each(|entry| self.show(entry));
                self.seq = *seq;
                self.records.clone_from(turns);
            }
            ServerMessage::SessionUpsert { session_id, seq, payload } if *session_id == self.session => {
                self.seqs.push(*seq);
                self.seq = self.seq.max(*seq);
                self.show(payload);
            }
            ServerMessage::SessionTurn { session_id, seq, payload, .. } if *session_id == self.session => {
                self.seqs.push(*seq);
                self.seq = self.seq.max(*seq);
                self.turns.push(payload.clone());
            }
            _ => {}
        }
    }

    fn show(&mut self, upsert: &Upsert) {
        let index = match self.items.iter().position(|item| item.id == upsert.item_id) {
            Some(index) => index,
            None => {
                self.items.push(Shown {
                    id: upsert.item_id.clone(),
                    status: upsert.status,
                    origin: None,
                    text: String::new(),
                    blocks: Vec::new(),
                    last: upsert.clone(),
                });
                self.items.len() - 1
            }
        };
        let item = &mut self.items[index];
        item.status = upsert.status;
        item.last = upsert.clone();
        let from = upsert.view.content_from.unwrap_or(0);
        match &upsert.body {
            UpsertBody::Message { content, origin } => {
                item.origin = Some(*origin);
                splice(&mut item.text, from, content);
            }
            UpsertBody::Thinking { content, .. } => splice(&mut item.text, from, content),
            UpsertBody::ToolCall { tool_output, .. } => item.text = tool_output.clone().unwrap_or_default(),
        }
        if let Some(patch) = &upsert.view.blocks {
            merge(&mut item.blocks, patch);
        }
    }

    /// The answers of the agent, one text per message.
    pub fn answers(&self) -> Vec<&str> {
        self.messages(Origin::Agent)
    }

    pub fn asked(&self) -> Vec<&str> {
        self.messages(Origin::User)
    }

    fn messages(&self, origin: Origin) -> Vec<&str> {
        self.items.iter().filter(|item| item.origin == Some(origin)).map(|item| item.text.as_str()).collect()
    }

    /// Texts by item, for comparing two screens.
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.items.iter().map(|item| (item.id.to_string(), item.text.clone())).collect()
    }

    pub fn is_settled(&self) -> bool {
        self.items.iter().all(|item| item.status.is_final())
    }
}

/// Keeps the first `from` UTF-16 units and goes on with `more`. Long texts come in thousands of frames: what is kept is
/// neither copied nor looked at, where that can be helped.
fn splice(text: &mut String, from: usize, more: &str) {
    // A text has no more UTF-16 units than bytes.
    if from < text.len() {
        if text.is_ascii() {
            text.truncate(from);
        } else {
            let kept: Vec<u16> = text.encode_utf16().take(from).collect();
            *text = String::from_utf16_lossy(&kept);
        }
    }
    text.push_str(more);
}

/// The rule of the `view` contract: keep the first blocks, keep the beginning of the next, go on from there.
pub fn merge(blocks: &mut Vec<String>, patch: &BlockPatch) {
    blocks.truncate(patch.from + 1);
    let mut open = if blocks.len() > patch.from { blocks.pop().unwrap_or_default() } else { String::new() };
    let mut html = patch.html.iter();
    if let Some(first) = html.next() {
        splice(&mut open, patch.keep, first);
        blocks.push(open);
    }
    blocks.extend(html.map(ToString::to_string));
}
