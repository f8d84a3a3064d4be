//! Nothing an agent sends or does becomes more than the allow-list names: every output is read strictly.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rendering::{Cut, DiffView};

#[path = "../../crates/rendering/tests/it/strict.rs"]
mod strict;

fuzz_target!(|text: &str| {
    let outputs = [
        rendering::markdown(text).concat(),
        rendering::markdown(&format!("````{text}")).concat(),
        rendering::diff(Some(text), &text.replace('a', "b"), text, DiffView::default()).html,
        rendering::terminal(text, Cut { head: 3, tail: 3 }).html,
        rendering::file_read(text, 1, text, Cut { head: 3, tail: 3 }).html,
        rendering::image(text, text).unwrap_or_default(),
    ];
    for html in outputs {
        let violations = strict::violations(&html);
        assert!(violations.is_empty(), "{violations:?} in {html}");
        // The last step has nothing left to do: both of its readers agree.
        assert_eq!(rendering::sanitized(&html), html);
    }
});
