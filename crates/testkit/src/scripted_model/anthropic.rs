//! The Anthropic Messages API, as far as Claude Code uses it.

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BEFORE_CUT, ModelState, Piece, Script, Step, ToolStep, body, event, tokens};

const MODEL: &str = "claude-sonnet-4-5";

pub(super) fn routes() -> Router<ModelState> {
    Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(|| async { Json(json!({"input_tokens": 100})) }))
        .layer(axum::extract::DefaultBodyLimit::disable())
}

async fn messages(State(stage): State<ModelState>, Json(request): Json<Value>) -> Response {
    stage.count_call();
    let call = Call::read(&request);
    let script = Script::parse(&call.prompt);
    let steps = match script.part(call.rounds) {
        Some(steps) => steps.to_vec(),
        None => vec![Step::Say(format!("The tool said: {}", call.tool_output))],
    };
    let failure = steps.iter().find_map(|step| match step {
        Step::Fail { status, times } => Some((*status, *times)),
        _ => None,
    });
    if let Some((status, times)) = failure
        && stage.fails(&call.prompt, times)
    {
        return refusal(status);
    }
    let mut answer = Answer::new(&call, request["model"].as_str().unwrap_or(MODEL));
    for step in steps {
        match step {
            // It has broken off as often as it should.
            Step::Cut { times } if !stage.fails(&call.prompt, times) => {}
            step => answer.add(step),
        }
    }
    if request["stream"].as_bool() == Some(true) {
        ([(header::CONTENT_TYPE, "text/event-stream")], body(stage, answer.finish())).into_response()
    } else {
        Json(answer.whole()).into_response()
    }
}

/// An error in the API's own shape.
fn refusal(status: u16) -> Response {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let error = json!({"type": "error", "error": {"type": kind, "message": format!("scripted {kind} ({status})")}});
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error)).into_response()
}

/// What a request asks for.
struct Call {
    /// The last message of the user.
    prompt: String,
    /// How many answers were given to it already.
    rounds: usize,
    /// The beginning of the newest tool result.
    tool_output: String,
    tools: Vec<String>,
    /// The working directory the agent names in its own prompt, for tools that want whole paths.
    directory: Option<String>,
}

impl Call {
    fn read(request: &Value) -> Self {
        let none = Vec::new();
        let messages = request["messages"].as_array().unwrap_or(&none);
        let at = messages.iter().rposition(|message| prompt_of(message).is_some()).unwrap_or(0);
        let answers = messages.iter().skip(at).filter(|message| message["role"] == "assistant").count();
        let tools = request["tools"].as_array().unwrap_or(&none);
        Self {
            prompt: messages.get(at).and_then(prompt_of).unwrap_or_default(),
            rounds: answers,
            tool_output: messages.last().and_then(tool_text).unwrap_or_default(),
            tools: tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect(),
            directory: working_directory(request),
        }
    }

    fn path(&self, path: &str) -> String {
        match &self.directory {
            Some(directory) if !path.starts_with('/') => format!("{directory}/{path}"),
            _ => path.into(),
        }
    }

    /// The name and input by which Claude Code knows a tool.
    fn tool(&self, step: &ToolStep) -> (String, Value) {
        let (name, input) = match step {
            ToolStep::Shell { command } => ("Bash", json!({"command": command, "description": "Run a command"})),
            ToolStep::Read { path } => ("Read", json!({"file_path": self.path(path)})),
            ToolStep::Write { path, content } => ("Write", json!({"file_path": self.path(path), "content": content})),
            ToolStep::Edit { path, old, new } => {
                ("Edit", json!({"file_path": self.path(path), "old_string": old, "new_string": new}))
            }
            ToolStep::Agent { prompt } => {
                let name = if self.tools.iter().any(|tool| tool == "Task") { "Task" } else { "Agent" };
                (name, json!({"description": "A sub task", "prompt": prompt, "subagent_type": "general-purpose"}))
            }
            ToolStep::Ask => (
                "AskUserQuestion",
                json!({"questions": [{
                    "question": "Which colour?", "header": "Colour", "multiSelect": false,
                    "options": [
                        {"label": "Red", "description": "warm"},
                        {"label": "Blue", "description": "cold"},
                    ],
                }]}),
            ),
            ToolStep::Plan { plan } => ("ExitPlanMode", json!({"plan": plan})),
            ToolStep::Named { name, input } => (name.as_str(), input.clone()),
        };
        (name.into(), input)
    }
}

/// The user's own text in a message: its last text that is not a reminder of the agent's.
fn prompt_of(message: &Value) -> Option<String> {
    if message["role"] != "user" {
        return None;
    }
    let own = |text: &str| !text.trim_start().starts_with('<') && !text.starts_with("[Request interrupted");
    match &message["content"] {
        Value::String(text) => own(text).then(|| text.clone()),
        Value::Array(blocks) => {
            let mut texts = blocks.iter().rev().filter(|block| block["type"] == "text");
            texts.find_map(|block| block["text"].as_str().filter(|text| own(text))).map(str::to_owned)
        }
        _ => None,
    }
}

fn tool_text(message: &Value) -> Option<String> {
    let result = message["content"].as_array()?.iter().rev().find(|block| block["type"] == "tool_result")?;
    let text = match &result["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    };
    let text = text.split("<system-reminder>").next().unwrap_or_default();
    Some(text.split_whitespace().take(40).collect::<Vec<_>>().join(" "))
}

/// Claude Code names its directory in the first message it sends.
fn working_directory(request: &Value) -> Option<String> {
    let text = request.to_string();
    let after = text.split_once("orking directory: ")?.1;
    let end = after.find(['\\', '"', '<'])?;
    Some(after[..end].trim().to_owned())
}

/// An answer being put together: the events of the stream, and the blocks for a call that does not stream.
struct Answer<'a> {
    call: &'a Call,
    id: String,
    model: String,
    pieces: Vec<Piece>,
    blocks: Vec<Value>,
    pieces_sent: usize,
    stop: &'static str,
    open_text: Option<String>,
    open_thought: Option<String>,
    broken: bool,
}

impl<'a> Answer<'a> {
    fn new(call: &'a Call, model: &str) -> Self {
        let id = format!("msg_{}", Uuid::now_v7().simple());
        let start = json!({"type": "message_start", "message": {
            "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        }});
        Self {
            call,
            id,
            model: model.into(),
            pieces: vec![event("message_start", &start)],
            blocks: Vec::new(),
            pieces_sent: 0,
            stop: "end_turn",
            open_text: None,
            open_thought: None,
            broken: false,
        }
    }

    fn add(&mut self, step: Step) {
        if self.broken {
            return;
        }
        if matches!(step, Step::Think(_) | Step::Tools(_)) {
            self.end_text();
        }
        if !matches!(step, Step::Hold(_) | Step::FailInBand | Step::Cut { .. }) {
            self.end_thought();
        }
        match step {
            Step::Say(text) => self.text(tokens(&text).map(|token| Piece::Data(token.into()))),
            Step::Stream { count, gap } => {
                let word = |at: usize| Piece::Data(if at == 0 { "w0".into() } else { format!(" w{at}") });
                self.text((0..count).flat_map(|at| [Piece::Wait(gap), word(at)]));
            }
            Step::Hold(gate) => self.pieces.push(Piece::Hold(gate)),
            Step::Think(text) => self.think(&text),
            Step::Tools(tools) => {
                for tool in &tools {
                    self.tool(tool);
                }
                self.stop = "tool_use";
            }
            // It has failed as often as it should.
            Step::Fail { .. } => {}
            Step::FailInBand => {
                let error =
                    json!({"type": "error", "error": {"type": "overloaded_error", "message": "scripted overload"}});
                self.pieces.push(event("error", &error));
                self.broken = true;
            }
            Step::Cut { .. } => {
                // The text so far has to be sent first.
                self.pieces.push(Piece::Wait(BEFORE_CUT));
                self.pieces.push(Piece::Cut);
                self.broken = true;
            }
        }
    }

    fn open(&mut self, block: Value) -> usize {
        let index = self.blocks.len();
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        self.pieces.push(event("content_block_start", &start));
        index
    }

    fn delta(&mut self, index: usize, delta: Value) {
        self.pieces_sent += 1;
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        self.pieces.push(event("content_block_delta", &delta));
    }

    fn close(&mut self, index: usize, whole: Value) {
        self.pieces.push(event("content_block_stop", &json!({"type": "content_block_stop", "index": index})));
        self.blocks.push(whole);
    }

    /// Text of several steps is one block, a line each, also over a hold: so an answer can stop in the middle of it.
    fn text(&mut self, parts: impl IntoIterator<Item = Piece>) {
        if self.open_text.is_none() {
            self.open(json!({"type": "text", "text": ""}));
        } else {
            self.send_text("\n");
        }
        self.open_text.get_or_insert_default();
        for part in parts {
            match part {
                Piece::Data(text) => self.send_text(&text),
                wait => self.pieces.push(wait),
            }
        }
    }

    fn send_text(&mut self, text: &str) {
        self.open_text.get_or_insert_default().push_str(text);
        self.delta(self.blocks.len(), json!({"type": "text_delta", "text": text}));
    }

    fn end_text(&mut self) {
        if let Some(whole) = self.open_text.take() {
            self.close(self.blocks.len(), json!({"type": "text", "text": whole}));
        }
    }

    /// It too stays open over a hold.
    fn think(&mut self, text: &str) {
        let index = self.open(json!({"type": "thinking", "thinking": "", "signature": ""}));
        for token in tokens(text) {
            self.delta(index, json!({"type": "thinking_delta", "thinking": token}));
        }
        self.open_thought = Some(text.to_owned());
    }

    fn end_thought(&mut self) {
        if let Some(whole) = self.open_thought.take() {
            let (index, signature) = (self.blocks.len(), "c2NyaXB0ZWQ=");
            self.delta(index, json!({"type": "signature_delta", "signature": signature}));
            self.close(index, json!({"type": "thinking", "thinking": whole, "signature": signature}));
        }
    }

    fn tool(&mut self, step: &ToolStep) {
        let (name, input) = self.call.tool(step);
        let id = format!("toolu_{}", &Uuid::new_v4().simple().to_string()[..20]);
        let index = self.open(json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        let text = input.to_string();
        for part in text.as_bytes().chunks(16) {
            // Cut anywhere but inside a character.
            if text.is_ascii() {
                self.delta(index, json!({"type": "input_json_delta", "partial_json": String::from_utf8_lossy(part)}));
            }
        }
        if !text.is_ascii() {
            self.delta(index, json!({"type": "input_json_delta", "partial_json": text}));
        }
        self.close(index, json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }

    fn usage(&self) -> Value {
        json!({"input_tokens": 100, "output_tokens": self.pieces_sent.max(1)})
    }

    fn finish(mut self) -> Vec<Piece> {
        if !self.broken {
            self.end_thought();
            self.end_text();
            let delta = json!({
                "type": "message_delta", "delta": {"stop_reason": self.stop, "stop_sequence": null}, "usage": self.usage(),
            });
            self.pieces.push(event("message_delta", &delta));
            self.pieces.push(event("message_stop", &json!({"type": "message_stop"})));
        }
        self.pieces
    }

    fn whole(mut self) -> Value {
        self.end_thought();
        self.end_text();
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": self.blocks,
            "stop_reason": self.stop, "stop_sequence": null, "usage": self.usage(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pieces: &[Piece]) -> String {
        let data = pieces.iter().map(|piece| match piece {
            Piece::Data(text) => text.as_str(),
            Piece::Hold(_) => "HOLD",
            Piece::Wait(_) => "",
            Piece::Cut => "CUT",
        });
        data.collect()
    }

    fn answer(messages: Value) -> String {
        let call = Call::read(&json!({"messages": messages}));
        let mut answer = Answer::new(&call, MODEL);
        for step in Script::parse(&call.prompt).part(call.rounds).unwrap_or_default() {
            answer.add(step.clone());
        }
        texts(&answer.finish())
    }

    #[test]
    fn the_last_text_of_the_user_is_the_script_and_reminders_are_not() {
        let content = json!([{"type": "text", "text": "say:yes"}, {"type": "text", "text": "<system-reminder>x"}]);
        let answered = answer(json!([
            {"role": "user", "content": "say:no"}, {"role": "assistant", "content": "no"},
            {"role": "user", "content": content},
        ]));
        assert!(answered.contains(r#""text":"yes""#), "{answered}");
    }

    #[test]
    fn after_a_tool_result_the_script_goes_on() {
        let answered = answer(json!([
            {"role": "user", "content": "bash:ls\nsay:done"}, {"role": "assistant", "content": []},
            {"role": "user", "content": [{"type": "tool_result", "content": "a.txt"}]},
        ]));
        assert!(answered.contains("done") && !answered.contains("tool_use"), "{answered}");
    }

    #[test]
    fn an_answer_can_stop_in_the_middle_of_a_block() {
        let answered = answer(json!([{"role": "user", "content": "say:one\nhold:gate\nsay:two"}]));
        let (before, after) = answered.split_once("HOLD").unwrap();
        assert!(before.contains("one") && !before.contains("content_block_stop"), "{answered}");
        assert!(after.contains("two") && after.contains("content_block_stop"), "{answered}");
    }
}
