//! The OpenAI Responses API, as far as Codex uses it.

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BEFORE_CUT, ModelState, Piece, Script, Step, ToolStep, body, event, tokens};

/// Codex has a model make up a title for each session, with the user's text inside of the request.
const TITLE_REQUEST: &str = "Your task is to generate a very short title";

pub(super) fn routes() -> Router<ModelState> {
    Router::new().route("/v1/responses", post(responses)).layer(axum::extract::DefaultBodyLimit::disable())
}

async fn responses(State(stage): State<ModelState>, Json(request): Json<Value>) -> Response {
    stage.count_call();
    let call = Call::read(&request);
    let script = Script::parse(&call.prompt);
    let steps = match script.part(call.rounds) {
        _ if call.prompt.starts_with(TITLE_REQUEST) => vec![Step::Say(json!({"title": "Scripted title"}).to_string())],
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
    let mut answer = Answer::new();
    for step in steps {
        match step {
            // It has broken off as often as it should.
            Step::Cut { times } if !stage.fails(&call.prompt, times) => {}
            step => answer.add(step),
        }
    }
    ([(header::CONTENT_TYPE, "text/event-stream")], body(stage, answer.finish())).into_response()
}

/// An error in the API's own shape.
fn refusal(status: u16) -> Response {
    let error = json!({"error": {"message": format!("scripted error {status}"), "type": "invalid_request_error", "code": null}});
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error)).into_response()
}

/// What a request asks for.
struct Call {
    /// The last message of the user.
    prompt: String,
    /// How often tools came back since.
    rounds: usize,
    /// The beginning of the newest tool result.
    tool_output: String,
}

impl Call {
    fn read(request: &Value) -> Self {
        let none = Vec::new();
        let input = request["input"].as_array().unwrap_or(&none);
        let at = input.iter().rposition(|item| prompt_of(item).is_some()).unwrap_or(0);
        let is_output = |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
        // Results that stand together came back together.
        let outputs: Vec<bool> = input.iter().skip(at).map(is_output).collect();
        let rounds = outputs.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let tool_output = input.iter().rfind(|item| is_output(item)).map(output_text).unwrap_or_default();
        Self { prompt: input.get(at).and_then(prompt_of).unwrap_or_default(), rounds, tool_output }
    }
}

/// The user's own text: what Codex adds to it is marked up.
fn prompt_of(item: &Value) -> Option<String> {
    if item["role"] != "user" {
        return None;
    }
    let texts = item["content"].as_array()?.iter().filter_map(|part| part["text"].as_str());
    let own: Vec<&str> = texts.filter(|text| !text.trim_start().starts_with('<')).collect();
    (!own.is_empty()).then(|| own.join("\n"))
}

fn output_text(item: &Value) -> String {
    let text = item["output"].as_str().map_or_else(|| item["output"].to_string(), str::to_owned);
    text.split_whitespace().take(40).collect::<Vec<_>>().join(" ")
}

/// The events of an answer being put together.
struct Answer {
    pieces: Vec<Piece>,
    items: usize,
    pieces_sent: usize,
    /// The message that is being streamed: its id and its text so far.
    open: Option<(String, String)>,
    broken: bool,
}

impl Answer {
    fn new() -> Self {
        let created = json!({"type": "response.created", "response": {"id": "resp_scripted"}});
        let pieces = vec![event("response.created", &created)];
        Self { pieces, items: 0, pieces_sent: 0, open: None, broken: false }
    }

    fn add(&mut self, step: Step) {
        if self.broken {
            return;
        }
        if matches!(step, Step::Think(_) | Step::Tools(_)) {
            self.end_text();
        }
        match step {
            Step::Say(text) => {
                self.begin_line();
                tokens(&text).for_each(|token| self.send_text(token));
            }
            Step::Stream { count, gap } => {
                self.begin_line();
                for at in 0..count {
                    self.pieces.push(Piece::Wait(gap));
                    self.send_text(&if at == 0 { "w0".to_owned() } else { format!(" w{at}") });
                }
            }
            Step::Hold(gate) => self.pieces.push(Piece::Hold(gate)),
            Step::Think(text) => self.think(&text),
            Step::Tools(tools) => tools.iter().for_each(|tool| self.tool(tool)),
            // It has failed as often as it should.
            Step::Fail { .. } => {}
            Step::FailInBand => {
                let error = json!({"code": "server_is_overloaded", "message": "scripted overload"});
                self.send("response.failed", json!({"response": {"id": "resp_scripted", "error": error}}));
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

    fn send(&mut self, kind: &str, mut data: Value) {
        data["type"] = kind.into();
        self.pieces.push(event(kind, &data));
    }

    /// Text of several steps is one message, a line each, also over a hold.
    fn begin_line(&mut self) {
        if self.open.is_some() {
            return self.send_text("\n");
        }
        let id = new_id("msg");
        let item = json!({"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []});
        self.send("response.output_item.added", json!({"output_index": self.items, "item": item}));
        self.open = Some((id, String::new()));
    }

    fn send_text(&mut self, text: &str) {
        let Some((id, answer)) = &mut self.open else { return };
        answer.push_str(text);
        let delta = json!({"item_id": id, "output_index": self.items, "content_index": 0, "delta": text});
        self.pieces_sent += 1;
        self.send("response.output_text.delta", delta);
    }

    fn end_text(&mut self) {
        if let Some((id, text)) = self.open.take() {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            self.done(
                json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}),
            );
        }
    }

    fn done(&mut self, item: Value) {
        self.send("response.output_item.done", json!({"output_index": self.items, "item": item}));
        self.items += 1;
    }

    fn think(&mut self, text: &str) {
        let id = new_id("rs");
        let item = json!({"type": "reasoning", "id": id, "summary": []});
        self.send("response.output_item.added", json!({"output_index": self.items, "item": item}));
        let part = json!({"item_id": id, "output_index": self.items, "summary_index": 0, "part": {"type": "summary_text", "text": ""}});
        self.send("response.reasoning_summary_part.added", part);
        for token in tokens(text) {
            let delta = json!({"item_id": id, "output_index": self.items, "summary_index": 0, "delta": token});
            self.send("response.reasoning_summary_text.delta", delta);
        }
        let summary = json!([{"type": "summary_text", "text": text}]);
        self.done(json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": "c2NyaXB0ZWQ="}));
    }

    fn tool(&mut self, step: &ToolStep) {
        let call_id = new_id("call");
        let item = match step {
            ToolStep::Write { path, content } => {
                patch(&call_id, &format!("*** Add File: {path}\n{}", lines('+', content)))
            }
            ToolStep::Edit { path, old, new } => {
                patch(&call_id, &format!("*** Update File: {path}\n@@\n{}{}", lines('-', old), lines('+', new)))
            }
            ToolStep::Read { path } => function(&call_id, "exec_command", &json!({"cmd": format!("cat {path}")})),
            ToolStep::Shell { command } => function(&call_id, "exec_command", &json!({"cmd": command})),
            ToolStep::Named { name, input } => function(&call_id, name, input),
            ToolStep::Agent { .. } | ToolStep::Ask | ToolStep::Plan { .. } => {
                function(&call_id, "exec_command", &json!({"cmd": "echo Codex has no such tool"}))
            }
        };
        self.done(item);
    }

    fn finish(mut self) -> Vec<Piece> {
        if !self.broken {
            self.end_text();
            let output = self.pieces_sent.max(1);
            let usage = json!({"input_tokens": 100, "output_tokens": output, "total_tokens": 100 + output,
                "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}});
            self.send("response.completed", json!({"response": {"id": "resp_scripted", "usage": usage}}));
        }
        self.pieces
    }
}

fn function(call_id: &str, name: &str, arguments: &Value) -> Value {
    let id = new_id("fc");
    json!({"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments.to_string()})
}

fn patch(call_id: &str, change: &str) -> Value {
    let input = format!("*** Begin Patch\n{change}*** End Patch\n");
    let id = new_id("ctc");
    json!({"type": "custom_tool_call", "id": id, "call_id": call_id, "name": "apply_patch", "input": input})
}

fn lines(mark: char, text: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}\n")).collect()
}

fn new_id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_came_back_together_are_one_round() {
        let user = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "bash:a"}]});
        let context = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]});
        let call = json!({"type": "function_call"});
        let output = json!({"type": "function_call_output", "output": "Output:\nhi\n"});
        let read = |items: &[&Value]| Call::read(&json!({"input": items}));
        let none = read(&[&context, &user]);
        assert_eq!((none.prompt.as_str(), none.rounds), ("bash:a", 0));
        let one = read(&[&context, &user, &call, &call, &output, &output]);
        assert_eq!((one.rounds, one.tool_output.as_str()), (1, "Output: hi"));
        assert_eq!(read(&[&user, &call, &output, &call, &output]).rounds, 2);
    }
}
