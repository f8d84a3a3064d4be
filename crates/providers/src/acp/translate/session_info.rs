//! What an agent reports besides the conversation itself: its title, what it has used, and compactions.

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1 as acp;

use super::Translator;
use crate::acp::content::block_text;
use crate::acp::event_builder::EventBuilder;
use crate::acp::tool::ToolCallSource;

impl Translator {
    pub(super) fn info(&mut self, info: acp::SessionInfoUpdate, builder: &mut EventBuilder) {
        if let MaybeUndefined::Value(title) = info.title {
            builder.facts.agent_title = Some(title).filter(|title| !title.trim().is_empty());
        }
        let meta = serde_json::Value::Object(info.meta.unwrap_or_default());
        if self.replaying
            && let Some(message) = meta.pointer("/liminal/turnFailed").and_then(serde_json::Value::as_str)
        {
            self.fail_replayed(message, builder);
        }
        let Some(error) = meta.pointer("/codex/error") else { return };
        if error["willRetry"].as_bool() != Some(true) {
            return;
        }
        if let Some(message) = error["message"].as_str() {
            self.active = true;
            builder.facts.activity = Some(message.to_owned());
        }
    }

    pub(super) fn usage(&mut self, usage: &acp::UsageUpdate, builder: &mut EventBuilder) {
        builder.facts.context = Some(protocol::facts::ContextUse { used: usage.used, size: usage.size });
        if let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("usd")) {
            self.cost = Some(cost.amount);
        }
    }

    /// A compaction is shown as a call: it runs, it may fail, and its summary is there to be opened.
    pub(super) fn compaction(&mut self, compaction: acp::CompactionUpdate, builder: &mut EventBuilder) {
        use acp::CompactionStatus as Status;
        let (status, title) = match compaction.status {
            Status::Completed => (acp::ToolCallStatus::Completed, "Conversation compacted"),
            Status::Failed => (acp::ToolCallStatus::Failed, "Compaction failed"),
            Status::Cancelled => (acp::ToolCallStatus::Failed, "Compaction cancelled"),
            _ => (acp::ToolCallStatus::InProgress, "Compacting the conversation"),
        };
        let is_running = status == acp::ToolCallStatus::InProgress;
        self.active = is_running;
        builder.facts.activity = Some(if is_running { title.to_owned() } else { String::new() });
        let text = match (compaction.error, compaction.summary) {
            (MaybeUndefined::Value(error), _) => Some(error),
            (_, MaybeUndefined::Value(blocks)) => {
                Some(blocks.into_iter().map(block_text).collect::<Vec<_>>().join("\n\n"))
            }
            _ => None,
        };
        let id = compaction_call_id(&compaction.compaction_id);
        let fields = acp::ToolCallUpdateFields::new()
            .kind(acp::ToolKind::Think)
            .name("compaction".to_owned())
            .title(title.to_owned())
            .status(status)
            .content(text.map(|text| vec![acp::ToolCallContent::from(text)]));
        self.tool(acp::ToolCallUpdate::new(id, fields), ToolCallSource::Update, builder);
    }

    pub(super) fn compaction_summary(&mut self, chunk: acp::CompactionSummaryChunk, builder: &mut EventBuilder) {
        let text = block_text(chunk.content);
        self.with_tool(&compaction_call_id(&chunk.compaction_id), builder, |tool, out| {
            tool.add_terminal_output(&text, out);
        });
    }
}

fn compaction_call_id(id: &acp::CompactionId) -> String {
    format!("compaction.{}", id.0)
}
