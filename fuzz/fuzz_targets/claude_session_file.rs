//! Whatever stands in a session file, it is read to its beginning, and pages of any size hold the same items.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use protocol::{AgentSessionId, CliType, SessionId};
use providers::claude::history::SessionFile;

fuzz_target!(|input: (u8, &[u8])| {
    let (items_max, text) = input;
    let (Ok(cli_type), Ok(agent_id)) = (CliType::parse("claude-code"), AgentSessionId::parse("s")) else { return };
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    if file.write_all(text).is_err() {
        return;
    }
    let session = SessionFile::at(file.path().to_owned(), SessionId::new(&cli_type, &agent_id), agent_id);
    let mut page = session.read(None, usize::from(items_max)).expect("a file that is there can be read");
    let mut pages = 1;
    while let Some(cursor) = page.older {
        page = session.read(Some(&cursor), usize::from(items_max)).expect("a file that is there can be read");
        assert!(page.older.as_ref().is_none_or(|older| older.0 < cursor.0), "paging goes back, always");
        pages += 1;
        assert!(pages <= text.len() + 1);
    }
});
