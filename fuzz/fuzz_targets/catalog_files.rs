//! Whatever stands in `projects.json` or `sessions.json`, it is read or refused with a reason, and what was read is the
//! same after it was written and read again: nothing of a user's list is lost by one start of the server.
#![no_main]

use catalog::files::{self, Contents, Unreadable};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde_json::{Map, Value};

fuzz_target!(|data: &[u8]| {
    check("projects", data, files::parse_projects);
    check("sessions", data, files::parse_sessions);
});

fn check<R: Serialize + PartialEq + std::fmt::Debug>(
    key: &str,
    data: &[u8],
    parse: fn(&[u8]) -> Result<Contents<R>, Unreadable>,
) {
    let read = match parse(data) {
        Ok(read) => read,
        Err(refused) => return assert!(!refused.to_string().is_empty()),
    };
    assert!(read.unreadable.iter().all(|reason| !reason.is_empty()));
    let again = parse(&written(key, &read)).expect("what was written can be read");
    assert_eq!(again.records.len(), read.records.len());
    assert!(again.unreadable.is_empty() && !again.earlier);
    // A number with more digits than a double holds settles when it is written; after that nothing moves.
    let once_more = parse(&written(key, &again)).expect("what was written can be read");
    assert_eq!(written(key, &once_more), written(key, &again));
}

fn written<R: Serialize>(key: &str, contents: &Contents<R>) -> Vec<u8> {
    let mut file = Map::new();
    file.insert("version".into(), 1.into());
    file.insert(key.into(), serde_json::to_value(&contents.records).expect("records are JSON"));
    file.extend(contents.extra.iter().map(|(name, value)| (name.clone(), Value::clone(value))));
    serde_json::to_vec(&file).expect("a file is JSON")
}
