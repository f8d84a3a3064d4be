//! Text with escape sequences → actions on a screen. Chunks may split sequences anywhere.

/// One action on a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Print(char),
    LineFeed,
    Return,
    Backspace,
    Tab,
    Up(usize),
    Down(usize),
    Right(usize),
    Left(usize),
    Column(usize),
    /// From the cursor to the end (0), from the start to the cursor (1), all (2).
    EraseLine(usize),
    EraseScreen(usize),
    /// Colours and weights, as their numbers.
    Style(Vec<u16>),
}

/// A longer sequence is treated as text.
const SEQUENCE_BYTES_MAX: usize = 64;

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    Escape,
    /// `ESC [`, with the characters since then.
    Control(String),
    /// `ESC ]` and similar, titles and links: skipped up to their end.
    Command,
    CommandEscape,
    /// `ESC (` and similar: one more character.
    Charset,
}

#[derive(Debug, Default)]
pub(super) struct Parser {
    state: State,
}

impl Parser {
    /// The action that the next character completes, if any.
    pub(super) fn step(&mut self, c: char) -> Option<Action> {
        match std::mem::take(&mut self.state) {
            State::Text => return self.text(c),
            State::Escape => match c {
                '[' => self.state = State::Control(String::new()),
                ']' | 'P' | 'X' | '^' | '_' => self.state = State::Command,
                '(' | ')' | '*' | '+' | '#' | '%' => self.state = State::Charset,
                '\u{1b}' => self.state = State::Escape,
                _ => {}
            },
            State::Control(mut parameters) => match c {
                '\u{40}'..='\u{7e}' => return control(c, &parameters),
                '\u{20}'..='\u{3f}' if parameters.len() < SEQUENCE_BYTES_MAX => {
                    parameters.push(c);
                    self.state = State::Control(parameters);
                }
                // Not a sequence after all.
                _ => return self.text(c),
            },
            State::Command => match c {
                '\u{7}' | '\u{9c}' => {}
                '\u{1b}' => self.state = State::CommandEscape,
                // A command that never ends would swallow the remaining output.
                '\n' => return self.text(c),
                _ => self.state = State::Command,
            },
            State::CommandEscape => match c {
                '\\' => {}
                _ => self.state = State::Command,
            },
            State::Charset => {}
        }
        None
    }

    fn text(&mut self, c: char) -> Option<Action> {
        Some(match c {
            '\u{1b}' => {
                self.state = State::Escape;
                return None;
            }
            '\n' | '\u{b}' | '\u{c}' => Action::LineFeed,
            '\r' => Action::Return,
            '\u{8}' => Action::Backspace,
            '\t' => Action::Tab,
            c if c.is_control() => return None,
            c => Action::Print(c),
        })
    }
}

fn control(last: char, parameters: &str) -> Option<Action> {
    if parameters.starts_with(['?', '>', '<', '=']) {
        return None;
    }
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
    if last == 'm' {
        return Some(Action::Style(numbers.collect()));
    }
    let first = usize::from(numbers.next().unwrap_or(0));
    let count = first.max(1);
    Some(match last {
        'A' | 'F' => Action::Up(count),
        'B' | 'E' => Action::Down(count),
        'C' => Action::Right(count),
        'D' => Action::Left(count),
        'G' | '`' => Action::Column(count - 1),
        'K' => Action::EraseLine(first),
        'J' => Action::EraseScreen(first),
        _ => return None,
    })
}
