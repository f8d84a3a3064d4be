//! One tool call: its invocation and its result.

use std::sync::Arc;

use protocol::{CallId, Timestamp, ToolDetail};
use serde_json::{Map, Value};

use crate::item::conclude;
use crate::text::Text;
use crate::update::ItemBody;
use crate::weight::{arguments_bytes, detail_bytes};

/// What a call is named when only its result is known.
const UNKNOWN_NAME: &str = "tool";
/// Argument under which text is kept that was cut off before it became a JSON object.
const PARTIAL_ARGUMENTS: &str = "partialArguments";

#[derive(Debug)]
pub(crate) struct ToolCall {
    /// Absent while only a result is known.
    name: Option<Arc<str>>,
    pub(crate) call_id: CallId,
    arguments: Arc<Map<String, Value>>,
    /// Streamed JSON of the arguments, until it has been read as a whole.
    arguments_text: String,
    /// How much of it was there when it last failed to be whole.
    arguments_tried_bytes: usize,
    pub(crate) output: Option<Text>,
    is_error: Option<bool>,
    detail: Arc<ToolDetail>,
    /// None where the source does not know it.
    started_at: Option<Timestamp>,
    /// It has ended once. Only the first end sets the time, even if that time is unknown.
    is_over: bool,
    /// Settled without a result, because the turn ended.
    cut_off: bool,
    /// By how much name, arguments and detail have grown since the last `take_growth`.
    grown_bytes: usize,
}

impl ToolCall {
    pub(crate) fn new(call_id: CallId, started_at: Timestamp) -> Self {
        let started_at = known(started_at);
        let detail = ToolDetail { started_at, ..ToolDetail::default() };
        Self {
            name: None,
            call_id,
            arguments: Arc::default(),
            arguments_text: String::new(),
            arguments_tried_bytes: 0,
            output: None,
            is_error: None,
            detail: Arc::new(detail),
            started_at,
            is_over: false,
            cut_off: false,
            grown_bytes: 0,
        }
    }

    /// Only a result has been seen so far, not the invocation.
    pub(crate) fn is_nameless(&self) -> bool {
        self.name.is_none()
    }

    /// Whether anything changed.
    pub(crate) fn set_name(&mut self, name: &str) -> bool {
        let changed = !name.is_empty() && self.name.as_deref() != Some(name);
        if changed {
            self.grown_bytes += name.len();
            self.name = Some(name.into());
        }
        changed
    }

    /// By how much the call has grown since the last call of this, its output aside: what replaces something weighs only
    /// what it has more.
    pub(crate) fn take_growth(&mut self) -> usize {
        std::mem::take(&mut self.grown_bytes)
    }

    /// Replaces the arguments. Empty ones are ignored. Returns whether anything changed.
    pub(crate) fn set_arguments(&mut self, arguments: Map<String, Value>) -> bool {
        if arguments.is_empty() {
            return self.read_arguments();
        }
        self.arguments_text = String::new();
        self.arguments_tried_bytes = 0;
        let changed = *self.arguments != arguments;
        if changed {
            self.grown_bytes += arguments_bytes(&arguments).saturating_sub(arguments_bytes(&self.arguments));
            self.arguments = Arc::new(arguments);
        }
        changed
    }

    /// What an invocation came with: an object, or the beginning of one whose rest follows in pieces.
    pub(crate) fn set_initial_arguments(&mut self, text: String) -> bool {
        match serde_json::from_str(&text) {
            Ok(arguments) => self.set_arguments(arguments),
            Err(_) => {
                self.add_arguments(&text);
                false
            }
        }
    }

    pub(crate) fn add_arguments(&mut self, piece: &str) {
        self.arguments_text.push_str(piece);
    }

    /// Reads the arguments that came in pieces, all at once. Whether anything changed.
    pub(crate) fn read_arguments(&mut self) -> bool {
        if self.arguments_text.len() == self.arguments_tried_bytes || self.arguments_text.trim().is_empty() {
            return false;
        }
        if let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(&self.arguments_text) {
            self.arguments_text = String::new();
            self.arguments_tried_bytes = 0;
            return !arguments.is_empty() && self.set_arguments(arguments);
        }
        self.arguments_tried_bytes = self.arguments_text.len();
        let partial = Value::String(self.arguments_text.clone());
        Arc::make_mut(&mut self.arguments).insert(PARTIAL_ARGUMENTS.into(), partial);
        true
    }

    /// Replaces what is known of the call, and keeps our own times where the source gives none. Whether anything changed.
    pub(crate) fn set_detail(&mut self, mut detail: Arc<ToolDetail>) -> bool {
        let ended_at = self.detail.ended_at;
        if detail.started_at.is_none() || (detail.ended_at.is_none() && ended_at.is_some()) || self.cut_off {
            let detail = Arc::make_mut(&mut detail);
            detail.started_at = detail.started_at.or(self.started_at);
            detail.ended_at = detail.ended_at.or(ended_at);
            detail.interrupted |= self.cut_off;
        }
        let changed = self.detail != detail;
        if changed {
            self.grown_bytes += detail_bytes(&detail).saturating_sub(detail_bytes(&self.detail));
            self.detail = detail;
        }
        changed
    }

    pub(crate) fn add_output(&mut self, piece: &str) {
        self.output.get_or_insert_default().append(piece);
    }

    /// Takes the result. Whether anything changed.
    pub(crate) fn set_result(&mut self, output: &str, is_error: bool, ended_at: Timestamp) -> bool {
        let mut changed = self.is_error != Some(is_error);
        self.is_error = Some(is_error);
        changed |= conclude(self.output.get_or_insert_default(), output);
        if std::mem::take(&mut self.cut_off) {
            let detail = Arc::make_mut(&mut self.detail);
            detail.interrupted = false;
            detail.ended_at = known(ended_at);
        }
        changed
    }

    /// The call is over: it has its result, it failed, or (`cut_off`) it will not come to its end. Whether that brought
    /// more arguments.
    pub(crate) fn finish(&mut self, cut_off: bool, ended_at: Timestamp) -> bool {
        let changed = self.read_arguments();
        self.cut_off = cut_off;
        let is_first = !std::mem::replace(&mut self.is_over, true);
        if is_first || (cut_off && !self.detail.interrupted) {
            let detail = Arc::make_mut(&mut self.detail);
            detail.ended_at = detail.ended_at.or(known(ended_at));
            detail.interrupted |= cut_off;
        }
        if let Some(output) = &self.output {
            output.shrink_to_fit();
        }
        changed
    }

    /// What arguments and detail weigh.
    pub(crate) fn facts_bytes(&self) -> usize {
        arguments_bytes(&self.arguments) + detail_bytes(&self.detail)
    }

    pub(crate) fn to_body(&self) -> ItemBody {
        ItemBody::ToolCall {
            name: self.name.clone().unwrap_or_else(|| UNKNOWN_NAME.into()),
            arguments: self.arguments.clone(),
            call_id: self.call_id.clone(),
            output: self.output.clone(),
            is_error: self.is_error,
            tool: Some(self.detail.clone()),
        }
    }
}

/// A replay may not know the time of an event.
fn known(at: Timestamp) -> Option<Timestamp> {
    (!at.is_unset()).then_some(at)
}
