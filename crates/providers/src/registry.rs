//! Which provider drives which CLI type.

use std::sync::Arc;

use protocol::CliType;

use crate::error::ProviderError;
use crate::provider::Provider;

/// Providers in the order in which pickers offer them.
#[derive(Clone, Debug, Default)]
pub struct Registry(Vec<Arc<dyn Provider>>);

impl Registry {
    pub fn new(providers: impl IntoIterator<Item = Arc<dyn Provider>>) -> Self {
        let mut registry = Self::default();
        for provider in providers {
            registry.add(provider);
        }
        registry
    }

    /// A later provider of the same type takes the place of the earlier one: a configured agent may replace a
    /// built-in one.
    pub fn add(&mut self, provider: Arc<dyn Provider>) {
        match self.0.iter_mut().find(|known| known.cli_type() == provider.cli_type()) {
            Some(known) => *known = provider,
            None => self.0.push(provider),
        }
    }

    pub fn get(&self, cli_type: &CliType) -> Result<&Arc<dyn Provider>, ProviderError> {
        self.0
            .iter()
            .find(|provider| provider.cli_type() == cli_type)
            .ok_or_else(|| ProviderError::UnsupportedCliType(cli_type.clone()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.0.iter()
    }
}
