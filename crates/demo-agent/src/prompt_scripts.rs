//! What the demo agent does for a prompt: one script for each keyword in it.

use agent_client_protocol_schema::v1 as acp;
use serde_json::json;

use crate::acp_connection::AcpConnection;
use crate::sessions::{End, Record};
use crate::texts::{self, COMMANDS};

/// The longest answer.
const LONG_WORDS_MAX: usize = 200_000;
const LONG_WORDS_DEFAULT: usize = 400;
const CONTEXT_TOKENS: u64 = 200_000;

const TOUR: [&str; 6] = ["think", "markdown", "plan", "edit", "run", "ask"];

/// The prompt was cancelled: its script stops here.
struct Cancelled;

pub(crate) fn play(connection: &AcpConnection, session: &str, prompt: &str) -> Result<acp::StopReason, acp::Error> {
    let is_first = !connection.sessions.has_history(session);
    let settings = connection.settings(session);
    let chatty = settings.mode == "chatty";
    let stage = PromptRun { connection, session, chatty, record: connection.sessions.record(session) };
    stage.record.prompt(prompt);
    if is_first {
        stage.record.settings(&settings);
        let title: String = prompt.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        connection.update(session, &acp::SessionUpdate::SessionInfoUpdate(acp::SessionInfoUpdate::new().title(title)));
    }
    let words: Vec<String> = prompt
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let mut scenes: Vec<&str> =
        COMMANDS.iter().map(|(name, _)| *name).filter(|name| words.iter().any(|word| word == name)).collect();
    if scenes.contains(&"tour") {
        scenes = TOUR.to_vec();
    }
    let long: Option<usize> = words.iter().find_map(|word| word.parse().ok());
    let mut failed = false;
    let played = (|| {
        if scenes.is_empty() {
            stage.send_text(texts::GREETING)?;
        }
        let is_tour = scenes == TOUR;
        for scene in scenes {
            match scene {
                "help" => stage.send_text(&texts::help())?,
                "think" => stage.think()?,
                "markdown" => stage.send_text(texts::MARKDOWN)?,
                "plan" => stage.plan()?,
                "edit" => stage.edit()?,
                "run" => stage.run()?,
                "ask" => stage.ask()?,
                "long" => stage.send_text(&long_text(long.unwrap_or(LONG_WORDS_DEFAULT)))?,
                "fail" => failed = true,
                _ => stage.crash(),
            }
        }
        if is_tour {
            stage.send_text(texts::TOUR_END)?;
        }
        Ok(())
    })();
    let used = connection.spend(session, 1_500 + prompt.len() as u64).min(CONTEXT_TOKENS);
    stage.show(acp::SessionUpdate::UsageUpdate(acp::UsageUpdate::new(used, CONTEXT_TOKENS)));
    let (end, result) = match played {
        Err(Cancelled) => (End::Cancelled, Ok(acp::StopReason::Cancelled)),
        Ok(()) if failed => (End::Failed, Err(acp::Error::new(-32603, texts::FAILURE))),
        Ok(()) => (End::Finished, Ok(acp::StopReason::EndTurn)),
    };
    stage.record.end(end);
    result
}

/// A text of so many words, in sentences and paragraphs.
fn long_text(words: usize) -> String {
    let mut text = String::new();
    for (place, word) in texts::LONG.split(' ').cycle().take(words.min(LONG_WORDS_MAX)).enumerate() {
        if place > 0 {
            text.push_str(if place % texts::LONG.split(' ').count() == 0 { "\n\n" } else { " " });
        }
        text.push_str(word);
    }
    let end = text.trim_end_matches(['.', ',']).len();
    text.truncate(end);
    text + "."
}

struct PromptRun<'a> {
    connection: &'a AcpConnection,
    session: &'a str,
    chatty: bool,
    record: Record,
}

impl PromptRun<'_> {
    /// Every update is saved before it is sent.
    fn show(&self, update: acp::SessionUpdate) {
        self.record.update(&update);
        self.connection.update(self.session, &update);
    }

    fn send_text(&self, text: &str) -> Result<(), Cancelled> {
        self.stream(text, acp::SessionUpdate::AgentMessageChunk)
    }

    /// Sends a message only if the mode is to explain.
    fn explain(&self, text: &str) -> Result<(), Cancelled> {
        if self.chatty { self.send_text(text) } else { Ok(()) }
    }

    /// Word by word.
    fn stream(&self, text: &str, update: fn(acp::ContentChunk) -> acp::SessionUpdate) -> Result<(), Cancelled> {
        let id = uuid::Uuid::new_v4().to_string();
        for word in text.split_inclusive(char::is_whitespace) {
            if !self.connection.pause(self.session, 1) {
                return Err(Cancelled);
            }
            let chunk = acp::ContentChunk::new(word.to_owned().into()).message_id(acp::MessageId::new(id.as_str()));
            self.show(update(chunk));
        }
        Ok(())
    }

    fn crash(&self) -> ! {
        self.record.end(End::Crashed);
        std::process::exit(1)
    }

    fn think(&self) -> Result<(), Cancelled> {
        self.stream(texts::THOUGHT, acp::SessionUpdate::AgentThoughtChunk)?;
        self.send_text(texts::AFTER_THOUGHT)
    }

    fn plan(&self) -> Result<(), Cancelled> {
        self.explain("Here is a plan; it is shown beside the conversation.")?;
        for done in 0..=texts::PLAN.len() {
            let entry = |(place, step): (usize, &&str)| {
                let status = match place.cmp(&done) {
                    std::cmp::Ordering::Less => acp::PlanEntryStatus::Completed,
                    std::cmp::Ordering::Equal => acp::PlanEntryStatus::InProgress,
                    std::cmp::Ordering::Greater => acp::PlanEntryStatus::Pending,
                };
                acp::PlanEntry::new(*step, acp::PlanEntryPriority::Medium, status)
            };
            let entries = texts::PLAN.iter().enumerate().map(entry).collect();
            self.show(acp::SessionUpdate::Plan(acp::Plan::new(entries)));
            if !self.connection.pause(self.session, 30) {
                return Err(Cancelled);
            }
        }
        self.send_text("The plan is done.")
    }

    fn edit(&self) -> Result<(), Cancelled> {
        self.explain("I change a file. It is shown as a diff; nothing is written.")?;
        let call = acp::ToolCall::new(new_id(), "Edit src/main.rs")
            .kind(acp::ToolKind::Edit)
            .name("edit_file".to_owned())
            .status(acp::ToolCallStatus::InProgress)
            .locations(vec![acp::ToolCallLocation::new("src/main.rs")])
            .raw_input(json!({"path": "src/main.rs"}))
            .content(vec![acp::Diff::new("src/main.rs", texts::NEW_FILE).old_text(texts::OLD_FILE.to_owned()).into()]);
        self.act(call, |_| Ok(()), "Done.")
    }

    fn run(&self) -> Result<(), Cancelled> {
        self.explain("I run a command. Its output comes in live.")?;
        let call = acp::ToolCall::new(new_id(), texts::COMMAND)
            .kind(acp::ToolKind::Execute)
            .name("shell".to_owned())
            .status(acp::ToolCallStatus::InProgress)
            .raw_input(json!({"command": texts::COMMAND}));
        self.act(
            call,
            |call| {
                for line in texts::COMMAND_OUTPUT {
                    if !self.connection.pause(self.session, 12) {
                        return Err(Cancelled);
                    }
                    let output = meta(json!({"terminal_output_delta": {"data": format!("{line}\n"), "terminal_id": call.tool_call_id}}));
                    let update = acp::ToolCallUpdate::new(call.tool_call_id.clone(), acp::ToolCallUpdateFields::new()).meta(output);
                    self.show(acp::SessionUpdate::ToolCallUpdate(update));
                }
                Ok(())
            },
            "All four tests pass.",
        )
    }

    /// Sends a tool call, its progress, and its end.
    fn act(
        &self,
        call: acp::ToolCall,
        happens: impl FnOnce(&acp::ToolCall) -> Result<(), Cancelled>,
        summary: &str,
    ) -> Result<(), Cancelled> {
        self.show(acp::SessionUpdate::ToolCall(call.clone()));
        let is_command = call.kind == acp::ToolKind::Execute;
        let result =
            happens(&call).and_then(|()| if self.connection.pause(self.session, 20) { Ok(()) } else { Err(Cancelled) });
        let status = if result.is_ok() { acp::ToolCallStatus::Completed } else { acp::ToolCallStatus::Failed };
        let exit = meta(
            json!({"terminal_exit": {"exit_code": if result.is_ok() { 0 } else { 130 }, "terminal_id": call.tool_call_id}}),
        );
        let fields = acp::ToolCallUpdateFields::new().status(status);
        let mut update = acp::ToolCallUpdate::new(call.tool_call_id, fields);
        if is_command {
            update = update.meta(exit);
        }
        self.show(acp::SessionUpdate::ToolCallUpdate(update));
        result?;
        self.send_text(summary)
    }

    fn ask(&self) -> Result<(), Cancelled> {
        self.explain("I ask before I do something.")?;
        let id = new_id();
        let fields = acp::ToolCallUpdateFields::new()
            .title("Delete the build directory".to_owned())
            .kind(acp::ToolKind::Delete)
            .status(acp::ToolCallStatus::Pending)
            .locations(vec![acp::ToolCallLocation::new("build")]);
        let call = acp::ToolCallUpdate::new(id.clone(), fields);
        let option = |id: &'static str, name: &'static str, kind| acp::PermissionOption::new(id, name, kind);
        let options = vec![
            option("allow-always", "Always allow", acp::PermissionOptionKind::AllowAlways),
            option("allow", "Allow once", acp::PermissionOptionKind::AllowOnce),
            option("reject", "Reject", acp::PermissionOptionKind::RejectOnce),
        ];
        // The request itself is no update: the call is written down before it, and what was answered after it.
        self.record.update(&acp::SessionUpdate::ToolCallUpdate(call.clone()));
        let request = acp::RequestPermissionRequest::new(self.session.to_owned(), call, options);
        let answer = self.connection.ask(self.session, "session/request_permission", &request).ok_or(Cancelled)?;
        let chosen = answer["result"]["outcome"]["optionId"].as_str().unwrap_or("cancelled").to_owned();
        let allowed = chosen.starts_with("allow");
        let status = if allowed { acp::ToolCallStatus::Completed } else { acp::ToolCallStatus::Failed };
        let text = format!("Permission asked, and answered with `{chosen}`.");
        let fields = acp::ToolCallUpdateFields::new().status(status).content(vec![text.into()]);
        // Kept with the call, so that it can be replayed as it was.
        let kept = meta(answer["result"]["_meta"].clone());
        self.show(acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(id, fields).meta(kept)));
        if self.connection.is_cancelled(self.session) {
            return Err(Cancelled);
        }
        self.send_text(&format!("The answer was `{chosen}`. (Nothing was deleted.)"))
    }
}

fn new_id() -> acp::ToolCallId {
    acp::ToolCallId::new(uuid::Uuid::new_v4().to_string())
}

fn meta(value: serde_json::Value) -> acp::Meta {
    match value {
        serde_json::Value::Object(fields) => fields,
        _ => acp::Meta::new(),
    }
}
