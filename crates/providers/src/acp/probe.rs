//! Whether an agent gives a session: the only way the protocol has to ask if it is logged in.

use std::path::Path;

use agent_client_protocol_schema::v1 as acp;

use super::agent::AcpAgent;
use super::connection::Connection;
use super::rpc_client::CallError;
use super::settings::AcpSettings;
use super::wire::{self, SessionSetup};
use super::{listing, login};
use crate::error::ProviderError;
use crate::provider::Login;

/// Nothing is authenticated here: a key that is there is named, and used by the first real session.
pub(super) async fn login(
    connection: &Connection,
    agent: &AcpAgent,
    settings: &AcpSettings,
    directory: &Path,
) -> Result<Login, ProviderError> {
    // What the agent calls new may be a session that the user has: only one that was not there before is deleted.
    let before = match connection.capabilities().can_delete {
        true => listing::all_sessions(connection, settings.session_timeout).await,
        false => None,
    };
    let request = acp::NewSessionRequest::new(directory);
    match connection.rpc.call::<SessionSetup>("session/new", &request, settings.session_timeout).await {
        Ok(setup) => {
            if let Some(id) = setup.session_id {
                let is_new = before.is_some_and(|before| !before.contains(&id));
                connection.close_session(&id, is_new, settings.session_timeout).await;
            }
            Ok(Login::Ready(None))
        }
        Err(CallError::Refused(error)) if error.code == wire::AUTH_REQUIRED => {
            Ok(login::outlook(connection, agent, &error.text()))
        }
        Err(CallError::Gone(detail)) => Err(ProviderError::Crashed { name: agent.name.clone(), detail }),
        Err(error) => Err(ProviderError::CreateFailed { detail: error.to_string() }),
    }
}
