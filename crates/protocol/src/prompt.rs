//! What the user sends to an agent: a list of parts, from the composer to the agent's wire.

use serde::{Deserialize, Serialize};

/// One message of the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    pub parts: Vec<PromptPart>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum PromptPart {
    Text { text: String },
}

impl Prompt {
    /// All of its text, for titles and for agents that take one string.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.parts.iter().map(|PromptPart::Text { text }| text.as_str()).collect();
        texts.join("\n")
    }

    /// There is nothing in it that an agent could answer.
    pub fn is_blank(&self) -> bool {
        self.parts.iter().all(|PromptPart::Text { text }| text.trim().is_empty())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self { parts: vec![PromptPart::Text { text }] }
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_of_several_parts_reads_as_one_text() {
        let part = |text: &str| PromptPart::Text { text: text.into() };
        let prompt = Prompt { parts: vec![part("one"), part("two")] };
        assert_eq!(prompt.text(), "one\ntwo");
        assert!(!prompt.is_blank());
        assert!(Prompt::from(" \n").is_blank());
        assert!(Prompt::default().is_blank());
    }
}
