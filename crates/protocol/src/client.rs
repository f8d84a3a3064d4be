//! What a browser may ask, parsed at the edge. A malformed message yields an error that names the field.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::AgentDefinition;
use crate::ids::{CliType, ItemId, ProjectId, SessionId};
use crate::model::{OpenTarget, ProjectDefaults};

/// Longest `requestId` we echo.
pub const REQUEST_ID_BYTES_MAX: usize = 128;
/// Longest reason we give: it may quote what was sent, which may be long.
const REASON_CHARACTERS_MAX: usize = 200;

/// A request and the id its answer repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFrame {
    pub request_id: Option<String>,
    pub message: ClientMessage,
}

/// Why a frame is not a request. `field` is empty when the frame as a whole is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", if field.is_empty() { reason.clone() } else { format!("{field}: {reason}") })]
pub struct InvalidMessage {
    pub request_id: Option<String>,
    pub field: String,
    pub reason: String,
}

macro_rules! client_messages {
    ($($(#[$doc:meta])* $wire:literal => $variant:ident { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? }),* $(,)?) => {
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
        #[serde(tag = "type", rename_all_fields = "camelCase")]
        pub enum ClientMessage {
            $($(#[$doc])* #[serde(rename = $wire)] $variant { $($(#[$attr])* $field: $type),* }),*
        }

        impl ClientMessage {
            pub const TYPES: &'static [&'static str] = &[$($wire),*];

            /// The `type` it has on the wire.
            pub fn wire_type(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $wire),* }
            }

            fn from_value(wire: &str, value: Value) -> Result<Self, (String, String)> {
                match wire {
                    $($wire => {
                        // A struct of its own, not the tagged enum: serde forgets the path inside a tagged enum.
                        #[derive(Deserialize)]
                        #[serde(rename_all = "camelCase")]
                        struct Fields { $($(#[$attr])* $field: $type),* }
                        let Fields { $($field),* } = fields(value)?;
                        Ok(Self::$variant { $($field),* })
                    })*
                    _ => Err(("type".into(), format!("unknown message type {wire:?}"))),
                }
            }
        }
    };
}

client_messages! {
    "project:list" => ProjectList {},
    "project:add" => ProjectAdd { path: String },
    "project:remove" => ProjectRemove { project_id: ProjectId },
    /// Takes a removal of this run back: the project is where and as it was, and its directory is not looked at.
    "project:restore" => ProjectRestore { project_id: ProjectId },
    /// What new sessions of the project begin with; without `defaults` there are none any more.
    "project:set-defaults" => ProjectSetDefaults {
        project_id: ProjectId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        defaults: Option<ProjectDefaults>,
    },
    /// Opens the project's own directory, on the machine the server runs on.
    "project:open-in" => ProjectOpenIn { project_id: ProjectId, target: OpenTarget },
    "session:list" => SessionList { project_id: ProjectId },
    "session:create" => SessionCreate { project_id: ProjectId, cli_type: CliType },
    /// With `since`, only what happened after that `seq` is wanted. `epoch` and `journalId` are those that came with the
    /// last `session:history`; without them `since` is of the present epoch.
    "session:open" => SessionOpen {
        session_id: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        journal_id: Option<String>,
    },
    /// The window no longer watches this session; nothing ends.
    "session:leave" => SessionLeave { session_id: SessionId },
    "session:send" => SessionSend { session_id: SessionId, content: String },
    "session:cancel" => SessionCancel { session_id: SessionId },
    "session:archive" => SessionArchive { session_id: SessionId },
    /// Takes an archive back.
    "session:restore" => SessionRestore { session_id: SessionId },
    "session:rename" => SessionRename { session_id: SessionId, title: String },
    "session:page" => SessionPage {
        session_id: SessionId,
        before: ItemId,
        #[serde(default = "page_limit_default")]
        limit: usize,
    },
    "session:seen" => SessionSeen { session_id: SessionId },
    /// The whole output of a tool call whose view was cut.
    "session:output" => SessionOutput { session_id: SessionId, item_id: ItemId },
    "session:set-option" => SessionSetOption { session_id: SessionId, option_id: String, value: String },
    "session:reconnect" => SessionReconnect {
        cli_type: CliType,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
    },
    /// Opens the session's own directory, on the machine the server runs on.
    "session:open-in" => SessionOpenIn { session_id: SessionId, target: OpenTarget },
    "settings:get" => SettingsGet {},
    /// Changes the commands that are given; an empty one goes back to the default.
    "settings:set" => SettingsSet {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        editor: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        terminal: Option<String>,
    },
    "path:complete" => PathComplete { prefix: String },
    /// Directories the user worked in before.
    "path:recent" => PathRecent {},
    "agent:list" => AgentList {},
    /// All agents with their definitions, for Settings.
    "agent:config" => AgentConfig {},
    /// Saves a definition, as a new agent or in the place of the one that `replaces` names.
    "agent:save" => AgentSave {
        revision: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<String>,
        definition: AgentDefinition,
    },
    /// Removes the entry of this name from `agents.json`.
    "agent:remove" => AgentRemove { revision: String, name: String },
    /// Starts an agent of the list for a moment, beside the one that may be in use.
    "agent:probe" => AgentProbe { cli_type: CliType },
    /// The same for a definition that need not be saved.
    "agent:probe-definition" => AgentProbeDefinition { definition: AgentDefinition },
}

impl ClientMessage {
    /// The session it is about.
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::SessionOpen { session_id, .. }
            | Self::SessionLeave { session_id }
            | Self::SessionSend { session_id, .. }
            | Self::SessionCancel { session_id }
            | Self::SessionArchive { session_id }
            | Self::SessionRestore { session_id }
            | Self::SessionRename { session_id, .. }
            | Self::SessionPage { session_id, .. }
            | Self::SessionSeen { session_id }
            | Self::SessionOutput { session_id, .. }
            | Self::SessionSetOption { session_id, .. }
            | Self::SessionOpenIn { session_id, .. } => Some(session_id),
            Self::SessionReconnect { session_id, .. } => session_id.as_ref(),
            Self::ProjectList {}
            | Self::ProjectAdd { .. }
            | Self::ProjectRemove { .. }
            | Self::ProjectRestore { .. }
            | Self::ProjectSetDefaults { .. }
            | Self::ProjectOpenIn { .. }
            | Self::SettingsGet {}
            | Self::SettingsSet { .. }
            | Self::SessionList { .. }
            | Self::SessionCreate { .. }
            | Self::PathComplete { .. }
            | Self::PathRecent {}
            | Self::AgentList {}
            | Self::AgentConfig {}
            | Self::AgentSave { .. }
            | Self::AgentRemove { .. }
            | Self::AgentProbe { .. }
            | Self::AgentProbeDefinition { .. } => None,
        }
    }
}

/// How many older items one `session:page` brings when it does not say.
pub const PAGE_LIMIT_DEFAULT: usize = 100;
/// The most one `session:page` may ask for.
pub const PAGE_LIMIT_MAX: usize = 500;

fn page_limit_default() -> usize {
    PAGE_LIMIT_DEFAULT
}

impl ClientFrame {
    /// Reads one text frame. Never panics; every error names what is wrong and repeats the `requestId` if it had one.
    pub fn parse(text: &str) -> Result<Self, InvalidMessage> {
        let at = |request_id: Option<String>, field: &str, reason: &str| InvalidMessage {
            request_id,
            field: field.into(),
            reason: shortened(reason),
        };
        let value: Value = serde_json::from_str(text).map_err(|error| at(None, "", &format!("not JSON: {error}")))?;
        let Value::Object(mut object) = value else {
            return Err(at(None, "", "must be a JSON object"));
        };
        let request_id = match object.remove("requestId") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) if id.len() <= REQUEST_ID_BYTES_MAX => Some(id),
            Some(Value::String(_)) => return Err(at(None, "requestId", "is too long")),
            Some(_) => return Err(at(None, "requestId", "must be a string")),
        };
        let wire = match object.remove("type") {
            Some(Value::String(wire)) => wire,
            Some(_) => return Err(at(request_id, "type", "must be a string")),
            None => return Err(at(request_id, "type", "is missing")),
        };
        let message = ClientMessage::from_value(&wire, Value::Object(object))
            .and_then(|message| message.checked())
            .map_err(|(field, reason)| at(request_id.clone(), &field, &reason))?;
        Ok(Self { request_id, message })
    }
}

fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(REASON_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.into(),
    }
}

impl ClientMessage {
    /// Rules that types alone do not say.
    fn checked(self) -> Result<Self, (String, String)> {
        let fault = |field: &str, reason: &str| Err((field.to_string(), reason.to_string()));
        match &self {
            Self::SessionSend { content, .. } if content.trim().is_empty() => fault("content", "must not be blank"),
            Self::SessionRename { title, .. } if title.trim().is_empty() => fault("title", "must not be blank"),
            Self::SessionPage { limit, .. } if !(1..=PAGE_LIMIT_MAX).contains(limit) => {
                fault("limit", &format!("must be between 1 and {PAGE_LIMIT_MAX}"))
            }
            Self::ProjectSetDefaults { defaults: Some(defaults), .. } if !is_small(defaults) => {
                fault("defaults", "has too many options, or too long ones")
            }
            Self::ProjectAdd { path } if path.contains('\0') => fault("path", "must not hold a NUL"),
            Self::PathComplete { prefix } if prefix.contains('\0') => fault("prefix", "must not hold a NUL"),
            Self::AgentSave { definition, .. } => definition.check().map(|()| self),
            Self::AgentProbeDefinition { definition } => definition.check_start().map(|()| self),
            _ => Ok(self),
        }
    }
}

/// Options a default may set, and the longest id or value of one: they are kept for every project and sent to every window.
const DEFAULT_OPTIONS_MAX: usize = 32;
const DEFAULT_OPTION_BYTES_MAX: usize = 1024;

fn is_small(defaults: &ProjectDefaults) -> bool {
    let texts = defaults.options.iter().flat_map(|(option, value)| [option, value]);
    defaults.options.len() <= DEFAULT_OPTIONS_MAX
        && texts.into_iter().all(|text| text.len() <= DEFAULT_OPTION_BYTES_MAX)
}

pub(crate) fn fields<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, (String, String)> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let reason = error.inner().to_string();
        // serde names a missing field only in its message.
        let missing = reason.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        match missing {
            Some(field) => (field.into(), "is missing".into()),
            None => (error.path().to_string(), reason),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str) -> (String, Option<String>) {
        let error = ClientFrame::parse(text).unwrap_err();
        assert!(!error.reason.is_empty());
        (error.field, error.request_id)
    }

    #[test]
    fn a_malformed_message_is_refused_with_the_field_at_fault() {
        assert_eq!(refused("").0, "");
        assert_eq!(refused("[]").0, "");
        assert_eq!(refused("{}").0, "type");
        assert_eq!(refused(r#"{"type":7}"#).0, "type");
        assert_eq!(refused(r#"{"type":"no:such"}"#).0, "type");
        assert_eq!(refused(r#"{"type":"project:add"}"#).0, "path");
        assert_eq!(refused(r#"{"type":"project:add","path":7}"#).0, "path");
        assert_eq!(refused(r#"{"type":"session:open","sessionId":"--help"}"#).0, "sessionId");
        assert_eq!(refused(r#"{"type":"session:send","sessionId":"codex:1","content":" \n"}"#).0, "content");
        assert_eq!(refused(r#"{"type":"session:page","sessionId":"codex:1","before":"a","limit":0}"#).0, "limit");
        assert_eq!(refused(r#"{"type":"project:list","requestId":7}"#).0, "requestId");
        let long = "x".repeat(2000);
        let defaults = format!(r#"{{"cliType":"codex","options":{{"mode":"{long}"}}}}"#);
        let text = format!(r#"{{"type":"project:set-defaults","projectId":"p","defaults":{defaults}}}"#);
        assert_eq!(refused(&text).0, "defaults");
    }

    #[test]
    fn a_refusal_does_not_repeat_all_that_was_sent() {
        let long = "é".repeat(100_000);
        for text in [
            format!(r#"{{"type":"{long}"}}"#),
            format!(r#"{{"type":"session:open","sessionId":"codex:1","since":"{long}"}}"#),
        ] {
            assert!(ClientFrame::parse(&text).unwrap_err().to_string().len() < 1000);
        }
    }

    #[test]
    fn a_refusal_repeats_the_request_id() {
        assert_eq!(refused(r#"{"type":"no:such","requestId":"r1"}"#).1.as_deref(), Some("r1"));
        assert_eq!(refused(r#"{"type":"project:add","requestId":"r2"}"#).1.as_deref(), Some("r2"));
    }

    #[test]
    fn fields_nobody_knows_are_passed_over() {
        let frame = ClientFrame::parse(r#"{"type":"project:list","colour":"red"}"#).unwrap();
        assert_eq!(frame.message, ClientMessage::ProjectList {});
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,200}") {
            let _ = ClientFrame::parse(&text);
        }

        #[test]
        fn no_json_makes_the_parser_panic(
            wire in proptest::sample::select(ClientMessage::TYPES),
            key in "[a-zA-Z]{0,12}",
            text in ".{0,20}",
            number: i64,
        ) {
            let value = serde_json::json!({"type": wire, key: text, "sessionId": number, "path": [text]});
            let _ = ClientFrame::parse(&value.to_string());
        }
    }
}
