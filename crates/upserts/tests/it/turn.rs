//! A turn under test: one short function for each event, and a clock that the test moves.

use std::time::Duration;

use protocol::stream::{
    ItemCancelled, ItemDelta, ItemDone, ItemError, ItemStart, ResponseDone, ResponseError, ResponseStart,
};
use protocol::{
    CallId, ErrorDetail, EventId, FinalItem, ItemId, ItemType, Origin, ResponseStatus, SessionId, StreamEvent,
    StreamPayload, Timestamp, TurnEvent, TurnId, UpsertStatus,
};
use upserts::{Emission, ItemBody, ItemUpdate, Moment, Text, UpsertConfig, UpsertProcessor};

pub(crate) struct Turn {
    pub(crate) processor: UpsertProcessor,
    elapsed: Duration,
    events: i64,
    pub(crate) taken: Vec<Emission>,
}

impl Turn {
    pub(crate) fn new(config: UpsertConfig) -> Self {
        let processor = UpsertProcessor::new(config, session_id(), turn_id());
        Self { processor, elapsed: Duration::ZERO, events: 0, taken: Vec::new() }
    }

    /// The documented gradient.
    pub(crate) fn batched() -> Self {
        Self::new(UpsertConfig::default())
    }

    pub(crate) fn live() -> Self {
        Self::new(UpsertConfig::live())
    }

    pub(crate) fn now(&self) -> Moment {
        Moment { wall: Timestamp::from_unix_ms(1_000_000 + self.elapsed.as_millis() as i64), elapsed: self.elapsed }
    }

    /// Sends these events while the way is not free.
    pub(crate) fn hold(&mut self, payloads: impl IntoIterator<Item = StreamPayload>) -> &mut Self {
        for payload in payloads {
            self.events += 1;
            let event = StreamEvent {
                event_id: EventId::parse(format!("e{}", self.events)).unwrap(),
                timestamp: Timestamp::from_unix_ms(self.events),
                turn_id: turn_id(),
                session_id: session_id(),
                payload,
            };
            self.processor.push(event, self.now());
        }
        self
    }

    /// Sends these events while the way is free: what each makes due goes out before the next.
    pub(crate) fn send(&mut self, payloads: impl IntoIterator<Item = StreamPayload>) -> &mut Self {
        for payload in payloads {
            self.hold([payload]).take();
        }
        self
    }

    pub(crate) fn take(&mut self) -> &mut Self {
        self.taken.extend(self.processor.take(self.now()));
        self
    }

    pub(crate) fn wait(&mut self, ms: u64) -> &mut Self {
        self.elapsed += Duration::from_millis(ms);
        self.take()
    }

    pub(crate) fn abort(&mut self, code: &str, message: &str) -> &mut Self {
        self.processor.abort(error(code, message), self.now());
        self.take()
    }

    pub(crate) fn items(&self) -> Vec<&ItemUpdate> {
        items(&self.taken)
    }

    /// Every emission of an item as `id status text`, every turn event by its type.
    pub(crate) fn emitted(&self) -> Vec<String> {
        self.taken.iter().map(line).collect()
    }

    /// What was emitted since the last call.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let lines = self.emitted();
        self.taken.clear();
        lines
    }

    pub(crate) fn last(&self, id: &str) -> &ItemUpdate {
        self.items().into_iter().rfind(|update| update.item_id.as_str() == id).unwrap()
    }
}

pub(crate) fn items(emissions: &[Emission]) -> Vec<&ItemUpdate> {
    emissions
        .iter()
        .filter_map(|emission| match emission {
            Emission::Item(update) => Some(update),
            Emission::Turn(_) => None,
        })
        .collect()
}

pub(crate) fn text(update: &ItemUpdate) -> String {
    update.body.text().map(Text::to_string).unwrap_or_default()
}

fn line(emission: &Emission) -> String {
    match emission {
        Emission::Item(update) => {
            let status = match update.status {
                UpsertStatus::Create => "create",
                UpsertStatus::Update => "update",
                UpsertStatus::Complete => "complete",
                UpsertStatus::Error => "error",
            };
            format!("{} {status} {}", update.item_id, text(update)).trim_end().to_owned()
        }
        Emission::Turn(TurnEvent::TurnStarted { .. }) => "turn started".into(),
        Emission::Turn(TurnEvent::TurnComplete { status, .. }) => format!("turn {status:?}").to_lowercase(),
        Emission::Turn(TurnEvent::TurnError { error_code, error_message, .. }) => {
            format!("turn error {error_code} {error_message}")
        }
    }
}

/// Name, arguments, error mark and whether it was interrupted.
pub(crate) fn call(update: &ItemUpdate) -> (String, String, Option<bool>, bool) {
    let ItemBody::ToolCall { name, arguments, is_error, tool, .. } = &update.body else {
        panic!("not a tool call: {update:?}")
    };
    let arguments = serde_json::to_string(arguments.as_ref()).unwrap();
    (name.to_string(), arguments, *is_error, tool.as_ref().is_some_and(|tool| tool.interrupted))
}

pub(crate) fn session_id() -> SessionId {
    SessionId::parse("codex:s1").unwrap()
}

pub(crate) fn turn_id() -> TurnId {
    TurnId::parse("t1").unwrap()
}

pub(crate) fn item_id(id: &str) -> ItemId {
    ItemId::parse(id).unwrap()
}

pub(crate) fn call_id(id: &str) -> CallId {
    CallId::parse(id).unwrap()
}

pub(crate) fn error(code: &str, message: &str) -> ErrorDetail {
    ErrorDetail { code: code.into(), message: message.into() }
}

pub(crate) fn item_start(id: &str, item_type: ItemType) -> ItemStart {
    ItemStart {
        item_id: item_id(id),
        item_type,
        initial_content: None,
        name: None,
        call_id: None,
        origin: None,
        parent_item_id: None,
        tool: None,
    }
}

pub(crate) fn started() -> StreamPayload {
    StreamPayload::ResponseStart(ResponseStart { model_id: "gpt".into(), provider_id: "openai".into() })
}

pub(crate) fn message(id: &str) -> StreamPayload {
    StreamPayload::ItemStart(item_start(id, ItemType::Message))
}

pub(crate) fn thought(id: &str) -> StreamPayload {
    StreamPayload::ItemStart(item_start(id, ItemType::Reasoning))
}

pub(crate) fn invoke(id: &str, call: &str, name: &str) -> StreamPayload {
    StreamPayload::ItemStart(ItemStart {
        name: Some(name.into()),
        call_id: Some(call_id(call)),
        ..item_start(id, ItemType::FunctionCall)
    })
}

pub(crate) fn output(id: &str, call: &str) -> StreamPayload {
    StreamPayload::ItemStart(ItemStart { call_id: Some(call_id(call)), ..item_start(id, ItemType::FunctionCallOutput) })
}

pub(crate) fn delta(id: &str, content: &str) -> StreamPayload {
    StreamPayload::ItemDelta(ItemDelta { item_id: item_id(id), delta_content: content.into(), tool: None })
}

pub(crate) fn done(id: &str, final_item: FinalItem) -> StreamPayload {
    StreamPayload::ItemDone(ItemDone { item_id: item_id(id), final_item })
}

pub(crate) fn message_done(id: &str, content: &str) -> StreamPayload {
    done(id, FinalItem::Message { content: content.into(), origin: Origin::Agent })
}

pub(crate) fn thought_done(id: &str, content: &str) -> StreamPayload {
    done(id, FinalItem::Reasoning { content: content.into(), provider_id: "anthropic".into() })
}

/// `arguments` is a JSON object.
pub(crate) fn invoked(id: &str, call: &str, name: &str, arguments: &str) -> StreamPayload {
    let arguments = serde_json::from_str(arguments).unwrap();
    done(id, FinalItem::FunctionCall { name: name.into(), call_id: call_id(call), arguments, tool: None })
}

pub(crate) fn result(id: &str, call: &str, output: &str, is_error: bool) -> StreamPayload {
    let final_item =
        FinalItem::FunctionCallOutput { call_id: call_id(call), output: output.into(), is_error, tool: None };
    done(id, final_item)
}

pub(crate) fn item_failed(id: &str, code: &str, message: &str) -> StreamPayload {
    StreamPayload::ItemError(ItemError { item_id: item_id(id), error: error(code, message) })
}

pub(crate) fn item_cancelled(id: &str) -> StreamPayload {
    StreamPayload::ItemCancelled(ItemCancelled { item_id: item_id(id), reason: None })
}

pub(crate) fn ended(status: ResponseStatus) -> StreamPayload {
    StreamPayload::ResponseDone(ResponseDone { status, finish_reason: None, error: None, usage: None })
}

pub(crate) fn completed() -> StreamPayload {
    ended(ResponseStatus::Completed)
}

pub(crate) fn cancelled() -> StreamPayload {
    ended(ResponseStatus::Cancelled)
}

pub(crate) fn failed(code: &str, message: &str) -> StreamPayload {
    StreamPayload::ResponseError(ResponseError { error: error(code, message) })
}

/// A text of exactly this many tokens, as the processor counts them.
pub(crate) fn tokens(count: usize) -> String {
    "abc ".repeat(count)
}
