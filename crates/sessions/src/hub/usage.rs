//! What all sessions used, per session and day, from their records. Archived sessions count too: they were used.

use std::time::SystemTime;

use catalog::SessionRecord;
use protocol::Timestamp;
use protocol::http::{UsageBody, UsageRow};

use super::Hub;

/// Rows of one answer, the newest: years of daily use by dozens of sessions.
const ROWS_MAX: usize = 20_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Hub {
    /// The last so many days, today among them; without a number all there is.
    pub fn usage(&self, days: Option<u32>) -> UsageBody {
        let now = Timestamp::from(SystemTime::now());
        let first = days.map(|days| {
            let back_ms = i64::from(days.saturating_sub(1)).saturating_mul(DAY_MS);
            catalog::day_of(Timestamp::from_unix_ms(now.unix_ms().saturating_sub(back_ms)))
        });
        let catalog = self.catalog();
        let mut rows: Vec<UsageRow> = Vec::new();
        for record in catalog.all_sessions() {
            let SessionRecord { id, title, project_id, cli_type, usage, .. } = record;
            let project_name = catalog.project(&project_id).map(|project| project.name);
            let is_recent = |day: &str| first.as_deref().is_none_or(|first| day >= first);
            rows.extend(usage.days().filter(|(day, _)| is_recent(day)).map(|(day, used)| UsageRow {
                day: day.to_owned(),
                session_id: id.clone(),
                title: title.clone(),
                project_id: project_id.clone(),
                project_name: project_name.clone(),
                cli_type: cli_type.clone(),
                turns: used.turns,
                input_tokens: used.input_tokens,
                output_tokens: used.output_tokens,
                cache_read_input_tokens: used.cache_read_input_tokens,
                cache_creation_input_tokens: used.cache_creation_input_tokens,
                cost_usd: used.cost_usd(),
            }));
        }
        rows.sort_by(|one, other| other.day.cmp(&one.day).then(other.tokens().cmp(&one.tokens())));
        rows.truncate(ROWS_MAX);
        UsageBody { today: catalog::day_of(now), rows }
    }
}
