//! Colours and weights of a cell, as classes.

/// How a character looks. The colours are the sixteen of every terminal; others are mapped to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    foreground: Option<u8>,
    background: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    strike: bool,
    inverse: bool,
}

impl Style {
    pub(super) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Applies the numbers of one `ESC [ … m`.
    pub(super) fn apply(&mut self, numbers: &[u16]) {
        let mut numbers = numbers.iter().copied();
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                9 => self.strike = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                29 => self.strike = false,
                30..=37 => self.foreground = Some(to_u8(number - 30)),
                38 => self.foreground = rich(&mut numbers).or(self.foreground),
                39 => self.foreground = None,
                40..=47 => self.background = Some(to_u8(number - 40)),
                48 => self.background = rich(&mut numbers).or(self.background),
                49 => self.background = None,
                90..=97 => self.foreground = Some(to_u8(number - 90 + 8)),
                100..=107 => self.background = Some(to_u8(number - 100 + 8)),
                _ => {}
            }
        }
    }

    pub(super) fn classes_into(self, html: &mut String) {
        let start = html.len();
        let mut add = |class: &str| {
            if html.len() > start {
                html.push(' ');
            }
            html.push_str(class);
        };
        if let Some(colour) = self.foreground {
            add(&format!("fg{colour}"));
        }
        if let Some(colour) = self.background {
            add(&format!("bg{colour}"));
        }
        let flags = [
            (self.bold, "bold"),
            (self.dim, "dim"),
            (self.italic, "italic"),
            (self.underline, "underline"),
            (self.strike, "strike"),
            (self.inverse, "inverse"),
        ];
        for (_, class) in flags.into_iter().filter(|(on, _)| *on) {
            add(class);
        }
    }
}

fn to_u8(number: u16) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// `5;n` or `2;r;g;b`.
fn rich(numbers: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match numbers.next()? {
        5 => {
            let number = numbers.next()?;
            Some(match number {
                0..=15 => to_u8(number),
                16..=231 => {
                    let level = |digit: u16| if digit == 0 { 0 } else { 55 + digit * 40 };
                    let cube = number - 16;
                    nearest(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
                }
                _ => {
                    let grey = 8 + number.saturating_sub(232).min(23) * 10;
                    nearest(grey, grey, grey)
                }
            })
        }
        2 => {
            let (red, green, blue) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(nearest(red, green, blue))
        }
        _ => None,
    }
}

/// The closest of the sixteen colours: which components are strong, and how bright it is.
fn nearest(red: u16, green: u16, blue: u16) -> u8 {
    let brightest = red.max(green).max(blue);
    let darkest = red.min(green).min(blue);
    if brightest - darkest < 32 {
        return match brightest {
            0..=55 => 0,
            56..=135 => 8,
            136..=215 => 7,
            _ => 15,
        };
    }
    let middle = (brightest + darkest) / 2;
    let hue = u8::from(red > middle) | u8::from(green > middle) << 1 | u8::from(blue > middle) << 2;
    if brightest > 205 { hue + 8 } else { hue }
}
