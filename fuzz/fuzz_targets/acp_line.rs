//! Whatever lines an ACP agent writes, the translation ends with every item and every turn settled.
//! The first byte chooses between a replay and a live turn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::{SessionId, Timestamp, TurnRecordStatus};
use providers::acp::read_lines;

fuzz_target!(|data: &[u8]| {
    let Some((first, lines)) = data.split_first() else { return };
    let Ok(lines) = std::str::from_utf8(lines) else { return };
    let Ok(session) = SessionId::parse("acp:fuzz") else { return };
    let history = read_lines(session, lines, first % 2 == 0, Timestamp::default());
    let items = upserts::fold(history.events, Timestamp::default());
    assert!(items.iter().all(|item| item.status.is_final()));
    assert!(history.turns.iter().all(|turn| turn.status != TurnRecordStatus::Running));
});
