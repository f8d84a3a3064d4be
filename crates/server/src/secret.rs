//! A text that grants access: the secret itself, or a one-time ticket.
//!
//! Compared in constant time, never printed by accident. The catalog stores it.

use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq;

/// Whoever knows it may use this server.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Constant time in everything but the length, which is no secret.
    pub fn matches(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }

    /// For the link that is shown to the user; no cookie holds it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_secret_matches_and_it_is_never_printed() {
        let secret = Secret::new("abc");
        assert!(secret.matches("abc"));
        for wrong in ["", "ab", "abcd", "abd", "ABC"] {
            assert!(!secret.matches(wrong), "{wrong}");
        }
        assert!(!format!("{secret:?}").contains("abc"));
    }
}
