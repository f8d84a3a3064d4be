//! Lines we send to Claude Code.

use serde_json::{Value, json};

/// A message of the user. We choose its id; the program keeps it in its file.
pub(super) fn user(session: &str, uuid: &str, text: &str) -> String {
    let message = json!({"role": "user", "content": text});
    json!({"type": "user", "uuid": uuid, "session_id": session, "parent_tool_use_id": null, "message": message})
        .to_string()
}

/// A request to the program; it answers with the same `id`.
pub(super) fn control(id: &str, request: &Value) -> String {
    json!({"type": "control_request", "request_id": id, "request": request}).to_string()
}

/// A tool may run. The input goes back even when unchanged: older versions refuse an answer without it.
pub(super) fn allow(id: &str, input: &Value) -> String {
    answer(id, json!({"behavior": "allow", "updatedInput": input}))
}

/// A tool may not run; the model reads why and goes on.
pub(super) fn deny(id: &str, message: &str) -> String {
    answer(id, json!({"behavior": "deny", "message": message}))
}

/// We do not know the request.
pub(super) fn not_supported(id: &str) -> String {
    let response = json!({"subtype": "error", "request_id": id, "error": "not supported by this client"});
    json!({"type": "control_response", "response": response}).to_string()
}

fn answer(id: &str, response: Value) -> String {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    json!({"type": "control_response", "response": response}).to_string()
}
