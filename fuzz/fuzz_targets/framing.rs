//! Any bytes in any chunks give the lines that one look at the whole stream gives, and the limit holds. The first byte
//! chooses the chunks' length, the second the limit.
#![no_main]

use agent_process::framing::LineFramer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [length, limit, stream @ ..] = data else { return };
    let limit_bytes = usize::from(*limit);
    let mut framer = LineFramer::new(limit_bytes);
    // A line that was too long is `None`.
    let mut framed: Vec<Option<Vec<u8>>> = Vec::new();
    for chunk in stream.chunks(usize::from(*length) + 1) {
        framer.push(chunk);
        while let Some(line) = framer.next_line() {
            framed.push(line.ok().map(|line| line.into_bytes()));
        }
    }
    framed.extend(framer.finish().map(|line| Some(line.into_bytes())));

    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().unwrap_or_default();
    let within = |line: &[u8]| line.len() <= limit_bytes;
    let mut expected: Vec<Option<Vec<u8>>> = lines
        .into_iter()
        .map(|line| within(line).then(|| line.strip_suffix(b"\r").unwrap_or(line).to_vec()))
        .collect();
    if !rest.is_empty() {
        expected.push(within(rest).then(|| rest.to_vec()));
    }
    assert_eq!(framed, expected);
});
