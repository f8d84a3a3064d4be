//! What a session has used, per day: turns, tokens and cost, as its agent reported them.
//!
//! Comes in: the usage of each turn when it ends. Goes out: sums per day, kept with the session's record. Sums per project
//! and over all sessions are made from these by whoever shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use protocol::{Timestamp, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whole dollars are too coarse for a sum, and fractions as floats drift.
const MICROS_PER_USD: f64 = 1_000_000.0;
/// One turn costs less than this. What is more is a wrong figure, and would spoil every sum.
const TURN_COST_USD_MAX: f64 = 1_000_000.0;

/// The days on which a session was used, each as `2026-11-18` in the machine's own time zone. A copy costs a pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UsageByDay(Arc<BTreeMap<String, DayUsage>>);

/// The sum of one day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DayUsage {
    pub turns: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    /// Missing when no turn of the day reported a cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl UsageByDay {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Oldest first.
    pub fn days(&self) -> impl DoubleEndedIterator<Item = (&str, &DayUsage)> {
        self.0.iter().map(|(day, usage)| (day.as_str(), usage))
    }

    pub(crate) fn add(&mut self, ended_at: Timestamp, usage: &Usage) {
        let day = day_of(ended_at);
        Arc::make_mut(&mut self.0).entry(day).or_default().add(usage);
    }
}

impl DayUsage {
    pub fn cost_usd(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine billion dollars")]
        self.cost_micro_usd.map(|micros| micros as f64 / MICROS_PER_USD)
    }

    fn add(&mut self, usage: &Usage) {
        let sum = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        sum(&mut self.turns, 1);
        sum(&mut self.input_tokens, usage.input_tokens);
        sum(&mut self.output_tokens, usage.output_tokens);
        sum(&mut self.cache_read_input_tokens, usage.cache_read_input_tokens.unwrap_or(0));
        sum(&mut self.cache_creation_input_tokens, usage.cache_creation_input_tokens.unwrap_or(0));
        // Agents are not trusted: neither NaN nor a negative figure counts.
        if let Some(cost) = usage.cost_usd.filter(|cost| (0.0..TURN_COST_USD_MAX).contains(cost)) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
            let micros = (cost * MICROS_PER_USD).round() as u64;
            sum(self.cost_micro_usd.get_or_insert_default(), micros);
        }
    }
}

/// The day of a moment in the machine's own time zone.
pub fn day_of(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.unix_ms()).unwrap_or_default();
    at.to_zoned(TimeZone::system()).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn usage(input_tokens: u64, cost_usd: Option<f64>) -> Usage {
        Usage { input_tokens, output_tokens: 1, cost_usd, ..Usage::default() }
    }

    #[test]
    fn turns_of_one_day_are_summed_and_days_are_kept_apart() {
        let mut days = UsageByDay::default();
        // Noon, so that the day is the same in nearly every time zone; and days apart.
        days.add(at("2026-11-16T12:00:00Z"), &usage(10, Some(0.1)));
        days.add(at("2026-11-16T12:00:01Z"), &usage(5, Some(0.2)));
        days.add(at("2026-11-18T12:00:00Z"), &usage(7, None));
        let sums: Vec<_> = days.days().map(|(_, day)| (day.turns, day.input_tokens, day.cost_usd())).collect();
        assert_eq!(sums, [(2, 15, Some(0.3)), (1, 7, None)]);
    }

    #[test]
    fn a_cost_that_cannot_be_one_is_not_counted_and_its_tokens_are() {
        let mut days = UsageByDay::default();
        for cost in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            days.add(at("2026-11-16T12:00:00Z"), &usage(u64::MAX, Some(cost)));
        }
        let (_, day) = days.days().next().unwrap();
        assert_eq!((day.turns, day.input_tokens, day.cost_usd()), (4, u64::MAX, None));
    }

    #[test]
    fn what_a_later_build_adds_to_a_day_is_kept() {
        let text = r#"{"2026-11-16":{"turns":1,"inputTokens":2,"outputTokens":3,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costMicroUsd":4,"later":true}}"#;
        let days: UsageByDay = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&days).unwrap(), text);
    }
}
