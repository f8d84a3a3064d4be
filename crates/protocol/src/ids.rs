//! Ids, one newtype each, checked where they enter.
//!
//! An id is a short string of harmless characters. None can be read as a command-line flag, a path or a URL part.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize};

/// Longest id we accept from anyone.
pub const ID_BYTES_MAX: usize = 256;

/// Why a string is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must not be empty")]
    Empty,
    #[error("is longer than {ID_BYTES_MAX} bytes")]
    TooLong,
    #[error("must start with a letter, a digit or an underscore")]
    BadStart,
    #[error("has a character outside A-Z a-z 0-9 . _ ~ + = @ : -")]
    BadCharacter,
    #[error("must have the form <agent type>:<session>")]
    NoAgent,
}

fn check(text: &str) -> Result<(), IdError> {
    let first = *text.as_bytes().first().ok_or(IdError::Empty)?;
    if text.len() > ID_BYTES_MAX {
        return Err(IdError::TooLong);
    }
    if !(first.is_ascii_alphanumeric() || first == b'_') {
        return Err(IdError::BadStart);
    }
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~+=@:-".contains(&byte)) {
        Ok(())
    } else {
        Err(IdError::BadCharacter)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS), ts(type = "string"))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the form; the only way in from outside.
            pub fn parse(text: impl AsRef<str>) -> Result<Self, IdError> {
                let text = text.as_ref();
                let check: fn(&str) -> Result<(), IdError> = $check;
                check(text)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(text).map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// A directory the user added: UUID v5 of its canonical path.
    ProjectId,
    check
);
id!(
    /// A kind of agent program: `claude-code`, `codex`, `demo`, or the key of a configured one. Holds no colon.
    CliType,
    |text| {
        check(text)?;
        if text.contains(':') { Err(IdError::BadCharacter) } else { Ok(()) }
    }
);
id!(
    /// The id an agent gave its own session.
    AgentSessionId,
    check
);
id!(
    /// A session as everyone names it: `<cli type>:<the agent's own id>`.
    SessionId,
    |text| match text.split_once(':') {
        // Each half may be as long as an id is, so that whatever `new` puts together is read back.
        Some((cli, agent)) => check(cli).and_then(|()| check(agent)),
        None => check(text).and(Err(IdError::NoAgent)),
    }
);
id!(
    /// From one user message to the agent's stop.
    TurnId,
    check
);
id!(
    /// One renderable thing in a turn.
    ItemId,
    check
);
id!(
    /// Ties a tool call to its result.
    CallId,
    check
);
id!(
    /// One stream event.
    EventId,
    check
);

impl SessionId {
    pub fn new(cli_type: &CliType, agent: &AgentSessionId) -> Self {
        Self(format!("{cli_type}:{agent}").into())
    }

    pub fn cli_type(&self) -> CliType {
        CliType(self.split().0.into())
    }

    pub fn agent_session_id(&self) -> AgentSessionId {
        AgentSessionId(self.split().1.into())
    }

    fn split(&self) -> (&str, &str) {
        // `parse` and `new` both guarantee the colon; an empty half is the harmless answer if that ever broke.
        self.0.split_once(':').unwrap_or((&self.0, ""))
    }
}

impl CliType {
    /// The type of a configured agent, made from the key the user gave it: `Gemini CLI` becomes `Gemini-CLI`.
    pub fn from_key(key: &str) -> Result<Self, IdError> {
        let folded: String = key
            .trim()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._~+=@-".contains(c) { c } else { '-' })
            .collect();
        Self::parse(folded)
    }
}

macro_rules! generated {
    ($($name:ident),*) => {$(
        impl $name {
            /// A fresh, time-ordered id of our own.
            pub fn generate() -> Self {
                Self(uuid::Uuid::now_v7().to_string().into())
            }
        }
    )*};
}
generated!(TurnId, ItemId, CallId);

impl EventId {
    /// A fresh, time-ordered id of our own. There is one for every piece an agent sends, so it is counted: to draw each
    /// from the system's randomness would cost a call to the kernel.
    pub fn generate() -> Self {
        static PROCESS: LazyLock<uuid::Uuid> = LazyLock::new(uuid::Uuid::now_v7);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{}-{:012x}", PROCESS.simple(), COUNT.fetch_add(1, Ordering::Relaxed)).into())
    }
}

/// An id an agent chose for something inside its own stream may hold any character. It is kept when it is harmless
/// and replaced by a stable digest when it is not, so that the same foreign id always gives the same id of ours.
macro_rules! foreign {
    ($($name:ident),*) => {$(
        impl $name {
            pub fn from_foreign(text: &str) -> Self {
                match check(text) {
                    Ok(()) => Self(text.into()),
                    Err(_) => Self(uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).to_string().into()),
                }
            }
        }
    )*};
}
foreign!(ItemId, CallId, TurnId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_names_its_agent_and_the_agents_own_id() {
        let id = SessionId::parse("codex:0193:a").unwrap();
        assert_eq!(id.cli_type().as_str(), "codex");
        assert_eq!(id.agent_session_id().as_str(), "0193:a");
    }

    #[test]
    fn a_session_id_of_the_longest_halves_is_read_back() {
        let (cli, agent) = ("c".repeat(ID_BYTES_MAX), "a".repeat(ID_BYTES_MAX));
        let id = SessionId::new(&CliType::parse(&cli).unwrap(), &AgentSessionId::parse(&agent).unwrap());
        assert_eq!(SessionId::parse(id.as_str()), Ok(id));
        assert_eq!(SessionId::parse(format!("codex:a{agent}")), Err(IdError::TooLong));
    }

    #[test]
    fn nothing_that_looks_like_a_flag_a_path_or_markup_is_an_id() {
        for bad in ["", "-x", "--resume", "../etc", "a/b", "a b", "a\0", "<b>", "a%2f", "é", ":x"] {
            assert!(ItemId::parse(bad).is_err(), "{bad:?}");
            assert!(SessionId::parse(format!("codex:{bad}")).is_err(), "{bad:?}");
        }
        assert_eq!(SessionId::parse("codex"), Err(IdError::NoAgent));
        assert_eq!(SessionId::parse("codex:--help"), Err(IdError::BadStart));
        assert_eq!(CliType::parse("a:b"), Err(IdError::BadCharacter));
        assert_eq!(ItemId::parse("a".repeat(ID_BYTES_MAX + 1)), Err(IdError::TooLong));
    }

    #[test]
    fn a_foreign_id_is_kept_when_harmless_and_stable_when_not() {
        assert_eq!(CallId::from_foreign("toolu_01").as_str(), "toolu_01");
        assert_eq!(CallId::from_foreign("a b/c"), CallId::from_foreign("a b/c"));
        assert_ne!(CallId::from_foreign("a b/c"), CallId::from_foreign("a b/d"));
    }

    #[test]
    fn events_are_numbered_in_order_and_their_ids_can_be_read_back() {
        let ids: Vec<EventId> = (0..1000).map(|_| EventId::generate()).collect();
        assert!(ids.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        assert!(ids.iter().all(|id| EventId::parse(id.as_str()).as_ref() == Ok(id)));
    }

    #[test]
    fn a_configured_agents_key_becomes_its_type() {
        assert_eq!(CliType::from_key("Gemini CLI").unwrap().as_str(), "Gemini-CLI");
        assert!(CliType::from_key("  ").is_err());
    }
}
