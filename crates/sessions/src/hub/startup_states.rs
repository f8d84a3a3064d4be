//! What nobody had seen when the last server stopped. Read from the catalog at the start; no agent is asked.

use std::collections::HashMap;

use catalog::{Catalog, TurnEnd, Unseen, UnseenKind};
use protocol::{ErrorCode, SessionId, SessionState};

use crate::attention::dormant;

/// How a turn ended whose server was killed.
const CUT_SHORT: &str = "Liminal Builder stopped in the middle of this turn";

/// The states that are not the plain one. Turns that ended with the server are noted as such.
pub(super) fn states(catalog: &Catalog) -> HashMap<SessionId, SessionState> {
    let mut states = HashMap::new();
    for record in catalog.all_sessions() {
        let mut unseen = record.unseen;
        if record.unanswered.is_some() {
            let cut = Unseen {
                kind: UnseenKind::Error,
                reason: Some(CUT_SHORT.into()),
                since: record.last_active_at,
                extra: serde_json::Map::new(),
            };
            catalog.turn_was_cut_short(
                &record.id,
                TurnEnd::error(ErrorCode::ProcessCrash.as_str(), CUT_SHORT),
                cut.clone(),
            );
            unseen = Some(cut);
        }
        if let Some(unseen) = unseen {
            states.insert(record.id, dormant(&unseen));
        }
    }
    states
}
