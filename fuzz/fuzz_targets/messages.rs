//! What comes in from outside as JSON, a browser's frame, a stream event or a saved file, is read or refused with a
//! reason, and what was read is written and read again the same.
#![no_main]

use catalog::files;
use libfuzzer_sys::fuzz_target;
use protocol::{ClientFrame, StreamEvent};

fuzz_target!(|data: &[u8]| {
    let _ = (files::parse_projects(data), files::parse_sessions(data));
    let Ok(text) = std::str::from_utf8(data) else { return };
    match ClientFrame::parse(text) {
        Ok(frame) => {
            let again = serde_json::to_string(&frame.message).unwrap();
            assert_eq!(ClientFrame::parse(&again).unwrap().message, frame.message);
        }
        Err(refused) => assert!(!refused.reason.is_empty()),
    }
    if let Ok(event) = StreamEvent::parse(text) {
        let again = serde_json::to_string(&event).unwrap();
        assert_eq!(StreamEvent::parse(&again).unwrap(), event);
    }
});
