//! The real Claude Code and the real Codex, configured to use only a scripted model.

use crate::app::Builder;
use crate::programs;
use crate::scripted_model::ScriptedModel;

impl ScriptedModel {
    /// What Claude Code needs in its environment.
    pub fn claude_environment(&self) -> [(&'static str, String); 6] {
        [
            ("ANTHROPIC_BASE_URL", self.url()),
            ("ANTHROPIC_API_KEY", "dummy".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
        ]
    }

    /// What Codex needs in its `config.toml`. The key it names is `SCRIPTED_KEY`.
    pub fn codex_settings(&self) -> String {
        include_str!("scripted_model/codex.toml").replace("{url}", &self.url())
    }
}

impl Builder {
    #[must_use]
    pub fn with_claude(self, model: &ScriptedModel) -> Self {
        let claude = format!("'{}'", programs::claude().display());
        let builder = self.env("CLAUDE_CMD", claude).env("ACP_START_TIMEOUT_MS", "60000");
        model.claude_environment().into_iter().fold(builder, |builder, (name, value)| builder.env(name, value))
    }

    /// # Panics
    /// When its settings cannot be written.
    #[must_use]
    pub fn with_codex(self, model: &ScriptedModel) -> Self {
        let settings = self.home().join(".codex");
        std::fs::create_dir_all(&settings)
            .and_then(|()| std::fs::write(settings.join("config.toml"), model.codex_settings()))
            .unwrap_or_else(|error| panic!("no settings for Codex: {error}"));
        self.env("CODEX_ACP_CMD", format!("'{}'", programs::codex_acp().display()))
            .env("ACP_START_TIMEOUT_MS", "60000")
            .env("SCRIPTED_KEY", "dummy")
            .env("NO_BROWSER", "1")
    }
}
