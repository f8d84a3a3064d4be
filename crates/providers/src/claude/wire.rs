//! Claude Code's stream-json lines, and the entries of its session files, as types.
//!
//! Comes in: one line of either. Goes out: a [`ClaudeLine`]. Both sources share one set of types, because they hold the
//! same messages in two spellings. Whatever we do not know is `Unknown` or left out; what we know may still be missing.
//! Kept out: meaning.

use protocol::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::json;

/// One line from the program, or one entry of a session file.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClaudeLine {
    System(Box<SystemLine>),
    Assistant(Box<MessageLine>),
    User(Box<MessageLine>),
    StreamEvent(StreamLine),
    Result(Box<ResultLine>),
    ControlRequest(ControlRequest),
    ControlResponse {
        response: ControlResponse,
    },
    ControlCancelRequest {
        request_id: String,
    },
    /// What became of a message we sent.
    CommandLifecycle {
        #[serde(default)]
        command_uuid: Option<String>,
        #[serde(default)]
        state: String,
    },
    /// Only in files: what was put into the conversation beside the messages.
    Attachment {
        #[serde(default)]
        uuid: Option<String>,
        #[serde(default)]
        timestamp: Option<Timestamp>,
        #[serde(default)]
        attachment: EntryAttachment,
    },
    #[serde(other)]
    Unknown,
}

impl ClaudeLine {
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        json::parse(bytes)
    }
}

/// A whole message of the model or of the user, or one block of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageLine {
    pub uuid: Option<String>,
    #[serde(alias = "sessionId")]
    pub session_id: Option<String>,
    /// The call of the sub-agent that wrote it.
    pub parent_tool_use_id: Option<String>,
    pub timestamp: Option<Timestamp>,
    pub message: Message,
    #[serde(alias = "toolUseResult")]
    pub tool_use_result: Option<Value>,
    pub tool_result_meta: Vec<ToolResultMeta>,
    #[serde(rename = "permissionDecision")]
    pub permission_decision: Option<PermissionDecisionRecord>,
    /// In a session file: how the program was run that wrote the entry. `cli` is a person at a terminal.
    pub entrypoint: Option<String>,
    #[serde(alias = "isApiErrorMessage")]
    pub is_api_error_message: bool,
    /// The kind of a model error; `is_api_error_message` is newer.
    pub error: Option<Value>,
    #[serde(alias = "apiErrorStatus")]
    pub api_error_status: Option<u16>,
    #[serde(rename = "isReplay")]
    pub is_replay: bool,
    #[serde(rename = "isSynthetic")]
    pub is_synthetic: bool,
    #[serde(rename = "isMeta")]
    pub is_meta: bool,
    #[serde(rename = "isSidechain")]
    pub is_sidechain: bool,
    #[serde(rename = "isCompactSummary")]
    pub is_compact_summary: bool,
    #[serde(rename = "isVisibleInTranscriptOnly")]
    pub is_visible_in_transcript_only: bool,
    #[serde(rename = "apiBlockIndex")]
    pub api_block_index: Option<u64>,
    pub origin: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    pub id: Option<String>,
    pub model: Option<String>,
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<ContentBlock>,
    pub usage: Option<WireUsage>,
}

/// A plain string is one text block; a block we cannot read does not cost us the others.
fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentBlock>, D::Error> {
    Ok(blocks_of(Value::deserialize(deserializer)?))
}

fn blocks_of(content: Value) -> Vec<ContentBlock> {
    match content {
        Value::String(text) => vec![ContentBlock::Text { text }],
        Value::Array(blocks) => {
            blocks.into_iter().map(|block| serde_json::from_value(block).unwrap_or(ContentBlock::Unknown)).collect()
        }
        _ => Vec::new(),
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    #[serde(alias = "server_tool_use", alias = "mcp_tool_use")]
    ToolUse {
        id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(alias = "web_search_tool_result", alias = "web_fetch_tool_result", alias = "mcp_tool_result")]
    ToolResult {
        tool_use_id: String,
        #[serde(default, deserialize_with = "blocks")]
        content: Vec<ContentBlock>,
        #[serde(default)]
        is_error: Option<bool>,
    },
    Image {
        #[serde(default)]
        source: ImageSource,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ImageSource {
    pub media_type: String,
    pub data: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct WireUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub cache_creation_input_tokens: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolResultMeta {
    pub id: String,
    /// Why the tool did not run, if it did not.
    pub non_execution_kind: Option<String>,
    pub permission_decision: Option<PermissionDecisionRecord>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PermissionDecisionRecord {
    pub decision: String,
    pub source: String,
}

/// A piece of the model's stream.
#[derive(Debug, Deserialize)]
pub struct StreamLine {
    pub event: StreamBody,
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub session_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamBody {
    MessageStart {
        message: Message,
    },
    /// The last figures of a message.
    MessageDelta {
        #[serde(default)]
        usage: WireUsage,
    },
    ContentBlockStart {
        index: u64,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Unknown,
}

/// The end of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResultLine {
    pub session_id: Option<String>,
    pub subtype: String,
    pub is_error: bool,
    pub result: Option<String>,
    pub errors: Vec<Value>,
    pub terminal_reason: Option<String>,
    /// Who asked for the turn, where it was not the user.
    pub origin: Option<Value>,
    pub stop_reason: Option<String>,
    pub api_error_status: Option<u16>,
    /// A running total, since the process or the session began.
    pub total_cost_usd: Option<f64>,
    /// Of this turn.
    pub usage: Option<WireUsage>,
    #[serde(rename = "modelUsage")]
    pub model_usage: Map<String, Value>,
    /// Newer versions report what this turn alone cost.
    pub model_usage_since_last_result: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
pub struct SystemLine {
    #[serde(default)]
    pub uuid: Option<String>,
    #[serde(default, alias = "sessionId")]
    pub session_id: Option<String>,
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
    #[serde(flatten)]
    pub body: SystemBody,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum SystemBody {
    Init {
        #[serde(default)]
        model: Option<String>,
        #[serde(default, rename = "permissionMode")]
        permission_mode: Option<String>,
    },
    Status {
        #[serde(default)]
        status: Option<String>,
        #[serde(default, rename = "permissionMode")]
        permission_mode: Option<String>,
    },
    ApiRetry {
        #[serde(default)]
        attempt: u64,
        #[serde(default)]
        max_retries: u64,
        #[serde(default)]
        retry_delay_ms: f64,
        #[serde(default)]
        error_status: Option<u16>,
    },
    /// How the file records a retry.
    ApiError {
        #[serde(default)]
        error: ApiError,
    },
    CompactBoundary,
    /// How the file records what a command of the program itself printed.
    LocalCommand {
        #[serde(default)]
        content: String,
    },
    BackgroundTasksChanged {
        #[serde(default)]
        tasks: Vec<Value>,
    },
    TaskNotification {
        #[serde(default)]
        tool_use_id: Option<String>,
        #[serde(default)]
        status: Option<String>,
        #[serde(default)]
        summary: Option<String>,
    },
    SessionTitleChanged {
        #[serde(default)]
        title: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ApiError {
    pub status: Option<u16>,
}

/// The program asks us.
#[derive(Debug, Deserialize)]
pub struct ControlRequest {
    pub request_id: String,
    pub request: ControlRequestBody,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum ControlRequestBody {
    CanUseTool {
        #[serde(default)]
        tool_name: String,
        #[serde(default)]
        input: Value,
        #[serde(default)]
        tool_use_id: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

/// The program answers us.
#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum ControlResponse {
    Success {
        request_id: String,
        #[serde(default)]
        response: Value,
    },
    Error {
        request_id: String,
        #[serde(default)]
        error: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryAttachment {
    /// A message that was sent while the agent worked and was taken into the running turn.
    QueuedCommand {
        #[serde(default, deserialize_with = "blocks")]
        prompt: Vec<ContentBlock>,
        #[serde(default, rename = "commandMode")]
        command_mode: Option<String>,
    },
    #[default]
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter_and_the_unknown_is_passed_over() {
        let late = br#"{"is_error":true,"new_field":[1],"subtype":"success","type":"result"}"#;
        assert!(matches!(ClaudeLine::parse(late).unwrap(), ClaudeLine::Result(result) if result.is_error));
        assert!(matches!(ClaudeLine::parse(br#"{"type":"no_such"}"#).unwrap(), ClaudeLine::Unknown));
        let system = br#"{"type":"system","subtype":"no_such","x":1}"#;
        let ClaudeLine::System(line) = ClaudeLine::parse(system).unwrap() else { panic!("not a system line") };
        assert!(matches!(line.body, SystemBody::Unknown));
    }

    #[test]
    fn a_block_that_cannot_be_read_does_not_cost_the_others() {
        let line = br#"{"type":"assistant","message":{"content":[{"type":"tool_use"},{"type":"text","text":"a"}]}}"#;
        let ClaudeLine::Assistant(line) = ClaudeLine::parse(line).unwrap() else { panic!("not an assistant line") };
        assert!(
            matches!(&line.message.content[..], [ContentBlock::Unknown, ContentBlock::Text { text }] if text == "a")
        );
    }
}
