//! A moment in UTC, to the millisecond, written as ISO 8601. This crate never asks what time it is.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch. `2026-11-15T21:15:56.123Z` on every wire and in every file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "string"))]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Moments outside the calendar (year ±9999) are clamped to its ends: a wrong clock must not stop a session.
    pub fn from_unix_ms(ms: i64) -> Self {
        let end = if ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_millisecond(ms).unwrap_or(end))
    }

    pub fn unix_ms(self) -> i64 {
        self.0.as_millisecond()
    }

    /// The beginning of all counting, which is no moment of ours: it stands for "unknown".
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }

    pub fn parse(text: &str) -> Option<Self> {
        let moment: jiff::Timestamp = text.parse().ok()?;
        Some(Self::from_unix_ms(moment.as_millisecond()))
    }
}

impl From<std::time::SystemTime> for Timestamp {
    fn from(time: std::time::SystemTime) -> Self {
        let ms = match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Self::from_unix_ms(ms)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("is not an ISO 8601 time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_milliseconds_and_read_back_the_same() {
        let moment = Timestamp::from_unix_ms(1_794_777_356_000);
        assert_eq!(serde_json::to_string(&moment).unwrap(), "\"2026-11-15T21:15:56.000Z\"");
        assert_eq!(Timestamp::parse("2026-11-15T21:15:56.000Z"), Some(moment));
        assert_eq!(Timestamp::parse("2026-11-15T22:15:56+01:00"), Some(moment));
    }

    #[test]
    fn no_number_and_no_text_makes_it_panic() {
        for ms in [i64::MIN, -1, 0, i64::MAX] {
            assert!(!Timestamp::from_unix_ms(ms).to_string().is_empty());
        }
        assert_eq!(Timestamp::parse("yesterday"), None);
    }
}
