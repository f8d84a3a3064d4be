//! The message printed at the start: version, data directory, how to open and how to stop it.

use std::path::Path;

use server::Secret;

pub(crate) struct Shown<'a> {
    pub(crate) data_dir: &'a Path,
    pub(crate) base_url: &'a str,
    /// `None` where no secret is needed.
    pub(crate) secret: Option<&'a Secret>,
}

/// The link contains the secret. A terminal shows it to the user; a log or a pipe stores it, so there the command to
/// open the page is printed instead. `default_data_dir` is where commands look by default.
pub(crate) fn text(shown: &Shown<'_>, at_terminal: bool, default_data_dir: &Path) -> String {
    let Shown { data_dir, base_url, secret } = shown;
    let open = match secret {
        None => format!("Open {base_url}/"),
        Some(secret) if at_terminal => format!("Open {base_url}/?token={}", secret.reveal()),
        Some(_) => {
            let place = match *data_dir == default_data_dir {
                true => String::new(),
                false => format!(" --data-dir '{}'", data_dir.display().to_string().replace('\'', r"'\''")),
            };
            format!("Listening on {base_url}/\nTo open it, run: liminal-builder open{place}")
        }
    };
    format!(
        "Liminal Builder {}, data in {}\n{open}\nPress Ctrl-C to stop.",
        env!("CARGO_PKG_VERSION"),
        data_dir.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_shown_at_a_terminal_and_nowhere_else() {
        let secret = Secret::new("s3cret");
        let text = |secret, at_terminal| {
            let shown = Shown { data_dir: Path::new("/home/a/it's"), base_url: "http://127.0.0.1:3000", secret };
            super::text(&shown, at_terminal, Path::new("/home/a/.liminal-builder"))
        };
        assert!(text(Some(&secret), true).contains("\nOpen http://127.0.0.1:3000/?token=s3cret\n"));
        let piped = text(Some(&secret), false);
        assert!(!piped.contains("s3cret") && piped.contains("\nListening on http://127.0.0.1:3000/\n"), "{piped}");
        assert!(piped.contains(r"run: liminal-builder open --data-dir '/home/a/it'\''s'"), "{piped}");
        assert!(text(None, false).contains("\nOpen http://127.0.0.1:3000/\n"));
    }
}
