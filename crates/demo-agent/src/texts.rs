//! The texts of the demo agent.

/// Slash commands, which are also the words that choose a scene.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("help", "List what the demo agent can show"),
    ("tour", "Show everything, one after the other"),
    ("markdown", "An answer with headings, a table, a list and code"),
    ("think", "Think before the answer"),
    ("plan", "Work through a plan"),
    ("edit", "Change a file, shown as a diff (nothing is written)"),
    ("run", "Run a command with live output (nothing is run)"),
    ("ask", "Ask for permission"),
    ("long", "A long answer; `long 2000` for so many words"),
    ("fail", "End the turn with an error"),
    ("crash", "Stop unexpectedly, to see how that looks"),
];

pub(crate) const GREETING: &str = "I am the demo agent. There is no model behind me: I show how an agent's work looks in \
Liminal Builder. Send `/help` to see what I can show, or `/tour` for all of it.";

pub(crate) const THOUGHT: &str = "The user wants to see how thinking looks. It should be muted, it should fold away, and \
it should not be mistaken for the answer. A few sentences will do, and then I say something short.";

pub(crate) const AFTER_THOUGHT: &str = "That was a thought. It folds away when the answer begins.";

pub(crate) const MARKDOWN: &str = r#"# A short report

Text comes in **as it is written**, with *emphasis*, `inline code` and [links](https://example.com).

| Step | State | Took |
|:-----|:-----:|-----:|
| Read the code | done | 1.2 s |
| Write the fix | done | 8.4 s |
| Run the tests | next | – |

1. Lists are lists,
2. also with numbers,
   - and inside of each other.
- [x] Tasks can be done
- [ ] or not.

```rust
/// Code is highlighted while it streams.
fn fibonacci(n: u32) -> u64 {
    match n {
        0 | 1 => u64::from(n),
        _ => fibonacci(n - 1) + fibonacci(n - 2),
    }
}
```

> And whatever an agent says, such as <script>alert(1)</script>, stays text.
"#;

pub(crate) const OLD_FILE: &str = r#"//! Greets whoever comes.

fn main() {
    println!("Hello, world!");
}
"#;

pub(crate) const NEW_FILE: &str = r#"//! Greets whoever comes, by name.

use std::env;

fn main() {
    let name = env::args().nth(1).unwrap_or_else(|| "world".to_owned());
    println!("Hello, {name}!");
}
"#;

pub(crate) const COMMAND: &str = "cargo test --workspace";

pub(crate) const COMMAND_OUTPUT: &[&str] = &[
    "\x1b[1m\x1b[32m   Compiling\x1b[0m greeter v0.1.0 (/demo/greeter)",
    "\x1b[1m\x1b[32m    Finished\x1b[0m `test` profile [unoptimized + debuginfo] target(s) in 0.84s",
    "\x1b[1m\x1b[32m     Running\x1b[0m unittests src/main.rs",
    "",
    "running 4 tests",
    "test greets_the_world ... \x1b[32mok\x1b[0m",
    "test greets_by_name ... \x1b[32mok\x1b[0m",
    "test keeps_unicode ... \x1b[32mok\x1b[0m",
    "test survives_an_empty_name ... \x1b[32mok\x1b[0m",
    "",
    "test result: \x1b[32mok\x1b[0m. 4 passed; 0 failed; 0 ignored; finished in 0.01s",
];

pub(crate) const PLAN: &[&str] = &["Look at the code", "Write the change", "Run the tests"];

pub(crate) const TOUR_END: &str = "That was the tour. One thing is yours to try: send `long 2000` and press Stop while I talk. What \
I have said by then stays, and you can go on at once.";

/// One paragraph of the long answer.
pub(crate) const LONG: &str = "The quick brown fox jumps over the lazy dog while seven wizards boil a pot of ink. Every \
letter learns to wait for its own small delay, and every word comes when it is ready. Nobody reads all of this, and that is \
what it is for: to scroll, to be stopped, and to go on where it was.";

pub(crate) const FAILURE: &str = "The demo agent was asked to fail.";

/// As Liminal Builder writes it when it happens.
pub(crate) const CRASH: &str = "Demo agent stopped unexpectedly";

pub(crate) type Choice = (&'static str, &'static str, &'static str);

pub(crate) const MODES: &[Choice] =
    &[("chatty", "Chatty", "Explains what it shows"), ("terse", "Terse", "Says only what it must")];

pub(crate) const MODELS: &[Choice] =
    &[("demo-large", "Demo Large", "Pretends to think"), ("demo-small", "Demo Small", "Does not")];

pub(crate) fn help() -> String {
    let lines = COMMANDS.iter().map(|(name, description)| format!("- `{name}`: {description}\n"));
    let list: String = lines.collect();
    format!(
        "Put any of these words into a message, with or without a slash:\n\n{list}\nSeveral words make several scenes."
    )
}
