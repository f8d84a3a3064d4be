//! Everything that can be set, by flag or by environment variable; the flag wins.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::Resettable;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser};
use server::HostName;

use crate::commands::CliCommand;

/// All your coding agents, in all your projects, in one local page.
///
/// Starts a server on this machine and prints the link that opens it in a browser. Your agents (Claude Code, Codex, or
/// any program that speaks the Agent Client Protocol) run under your own subscriptions, as child processes. Nothing is
/// sent anywhere else.
#[derive(Clone, Debug, Parser)]
#[command(name = "liminal-builder", version, after_help = EXAMPLES, args_override_self = true, verbatim_doc_comment)]
pub(crate) struct Settings {
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
    #[command(flatten)]
    pub(crate) listening: Listening,
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) agents: Agents,
    #[command(flatten)]
    pub(crate) opening: Opening,
}

const EXAMPLES: &str = "\
Examples:
  liminal-builder                        start, and open the page in the browser
  liminal-builder --port 0 --no-open     any free port; only print the link
  CODEX_ACP_CMD='npx codex-acp' liminal-builder
  liminal-builder doctor                 is everything in order?
  id=$(liminal-builder new codex)        a session in this directory, on the server that runs
  liminal-builder send $id 'Say hello'   and its answer

The first Ctrl-C stops the agents and saves everything, within 10 seconds; the second one exits at once.
Exit status: 0 stopped as asked, 1 could not start or could not stop in time, 2 wrong usage. Commands have more: see
`liminal-builder help send`.";

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Where it listens")]
pub(crate) struct Listening {
    /// Address to listen on. Anything but loopback lets other machines in, if they know the secret
    #[arg(long, env = "LIMINAL_HOST", value_name = "ADDRESS", default_value = "127.0.0.1", hide_env_values = true)]
    pub(crate) host: String,

    /// Port to listen on; 0 takes any free one
    #[arg(long, env = "LIMINAL_PORT", value_name = "PORT", default_value_t = 3000, hide_env_values = true)]
    pub(crate) port: u16,

    /// More host names to answer to, as behind a proxy: name or name:port, separated by commas
    #[arg(long, env = "LIMINAL_ALLOWED_HOSTS", value_name = "NAMES", value_delimiter = ',', hide_env_values = true)]
    pub(crate) allowed_hosts: Vec<HostName>,

    /// Let every program and every user of this machine in, without the secret. Loopback only
    #[arg(long)]
    pub(crate) no_auth: bool,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Files and logs")]
pub(crate) struct Files {
    /// Where projects, sessions and the secret are kept [default: ~/.liminal-builder]
    #[arg(long, env = "LIMINAL_DATA_DIR", value_name = "DIRECTORY", global = true, hide_env_values = true)]
    data_dir: Option<PathBuf>,

    /// Record everything said on the disk; off keeps it in memory, until the server stops
    #[arg(long, env = "LIMINAL_JOURNAL", value_name = "on|off", default_value = "on", hide_env_values = true)]
    pub(crate) journal: JournalSetting,

    /// What to log: error, warn, info or debug, also per module, as in "info,server=debug"
    #[arg(long, env = "LIMINAL_LOG", value_name = "FILTER", default_value = "info", hide_env_values = true)]
    pub(crate) log: String,

    /// Log as JSON, one object per line
    #[arg(long)]
    pub(crate) log_json: bool,

    /// From the first Ctrl-C to the end, whatever the agents do
    #[arg(long, value_name = "MS", default_value_t = 10_000, hide = true)]
    pub(crate) stop_time_ms: u64,
}

/// Where everything said is recorded.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalSetting {
    /// In a file.
    On,
    /// In memory.
    Off,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Agents")]
pub(crate) struct Agents {
    /// Command line that starts Claude Code
    #[arg(long, env = "CLAUDE_CMD", value_name = "COMMAND", default_value = "claude", hide_env_values = true)]
    pub(crate) claude_cmd: String,

    /// Command line that starts Codex
    #[arg(long, env = "CODEX_ACP_CMD", value_name = "COMMAND", default_value = "codex-acp", hide_env_values = true)]
    pub(crate) codex_acp_cmd: String,

    /// Time an agent has to start and to answer the handshake
    #[arg(long, env = "ACP_START_TIMEOUT_MS", value_name = "MS", default_value_t = 15_000, hide_env_values = true)]
    pub(crate) acp_start_timeout_ms: u64,

    /// Silence in a turn after which the session says so. Nothing is ended by it
    #[arg(long, env = "ACP_PROMPT_TIMEOUT_MS", value_name = "MS", default_value_t = 30_000, hide_env_values = true)]
    pub(crate) acp_prompt_timeout_ms: u64,

    /// Idle time after which a Claude Code process is ended, or a session closed at an ACP agent that can resume it
    /// with the next message; 0 = never
    #[arg(long, env = "LIMINAL_IDLE_MINUTES", value_name = "MINUTES", default_value_t = 15, hide_env_values = true)]
    pub(crate) idle_minutes: u64,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Browser")]
pub(crate) struct Opening {
    /// Open the page in the browser, wherever this was started
    #[arg(long, overrides_with = "no_open", action = ArgAction::SetTrue)]
    pub(crate) open: bool,

    /// Only print the link. Without either flag the page opens when this is a terminal with a display
    #[arg(long, overrides_with = "open", action = ArgAction::SetTrue)]
    pub(crate) no_open: bool,

    /// Give the browser its one-time link in a private file, as on systems that do not report the owner of a connection
    #[arg(long, hide = true)]
    pub(crate) open_by_file: bool,
}

impl Settings {
    /// The settings from the command line and the environment. Exits the program on errors or when help is requested.
    pub(crate) fn read() -> Self {
        let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
        let matches = without_empty(Self::command(), &is_empty).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// An empty variable counts as not set: `LIMINAL_PORT= liminal-builder` is how a shell clears one.
fn without_empty(command: clap::Command, is_empty: &impl Fn(&OsStr) -> bool) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_env() {
        Some(name) if is_empty(name) => arg.env(Resettable::Reset),
        _ => arg,
    });
    command.mut_subcommands(|subcommand| without_empty(subcommand, is_empty))
}

impl Listening {
    /// The address to bind, once it is clear that binding it is safe.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        let address = self.resolve()?;
        if self.no_auth && !address.ip().is_loopback() {
            bail!(
                "--no-auth works on loopback only: at {} everyone on the network could run programs as you.\n\
                 Omit --no-auth, or keep --host at 127.0.0.1.",
                address.ip()
            );
        }
        Ok(address)
    }

    fn resolve(&self) -> anyhow::Result<SocketAddr> {
        let host = self.host.trim();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(SocketAddr::new(address, self.port));
        }
        if bare.eq_ignore_ascii_case("localhost") {
            return Ok(SocketAddr::from(([127, 0, 0, 1], self.port)));
        }
        let unknown = || format!("the host {host:?} is not an address of this machine");
        (bare, self.port).to_socket_addrs().with_context(unknown)?.next().with_context(unknown)
    }
}

impl Files {
    pub(crate) fn data_dir(&self) -> anyhow::Result<PathBuf> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        data_dir(self.data_dir.as_deref(), home)
    }

    /// The default data directory of a command; empty where there is no home directory.
    pub(crate) fn default_data_dir(&self) -> PathBuf {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        data_dir(None, home).unwrap_or_default()
    }
}

/// The shell expands `~` in a flag, but not in a variable from a file.
fn data_dir(given: Option<&Path>, home: Option<OsString>) -> anyhow::Result<PathBuf> {
    let home = || home.map(PathBuf::from).context("HOME is not set: set --data-dir to the directory for the files");
    match given.filter(|given| !given.as_os_str().is_empty()) {
        None => Ok(home()?.join(".liminal-builder")),
        Some(given) => match given.strip_prefix("~") {
            Ok(rest) => Ok(home()?.join(rest)),
            Err(_) => Ok(given.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Settings {
        Settings::try_parse_from(std::iter::once(&"liminal-builder").chain(args)).unwrap()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Settings::command().debug_assert();
    }

    #[test]
    fn without_flags_it_listens_on_loopback_port_3000() {
        let address = parse(&[]).listening.address().unwrap();
        assert_eq!(address.to_string(), "127.0.0.1:3000");
    }

    #[test]
    fn going_without_the_secret_is_refused_beyond_loopback() {
        for host in ["0.0.0.0", "::", "[::]", "192.168.1.5"] {
            let refused = parse(&["--host", host, "--no-auth"]).listening.address().unwrap_err();
            assert!(refused.to_string().contains("loopback"), "{refused}");
            assert!(parse(&["--host", host]).listening.address().is_ok());
        }
        for host in ["127.0.0.1", "::1", "[::1]", "localhost", "127.0.0.9"] {
            assert!(parse(&["--host", host, "--no-auth"]).listening.address().unwrap().ip().is_loopback());
        }
    }

    #[test]
    fn the_journal_is_on_unless_it_is_turned_off() {
        assert_eq!(parse(&[]).files.journal, JournalSetting::On);
        assert_eq!(parse(&["--journal", "off"]).files.journal, JournalSetting::Off);
        assert!(Settings::try_parse_from(["liminal-builder", "--journal", "maybe"]).is_err());
    }

    #[test]
    fn the_last_of_open_and_no_open_wins() {
        let opening = parse(&["--open", "--no-open"]).opening;
        assert!(opening.no_open && !opening.open);
    }

    #[test]
    fn host_names_are_separated_by_commas_and_hold_no_urls() {
        let settings = parse(&["--allowed-hosts", "box.example, other.example:8443"]);
        let names = ["box.example", "other.example:8443"].map(|name| name.parse().unwrap());
        assert_eq!(settings.listening.allowed_hosts, names);
        for bad in ["http://box.example", "*.example", "box.example/", "good.example,:8443", "box:port", "a,,b"] {
            let refused = Settings::try_parse_from(["liminal-builder", "--allowed-hosts", bad]).unwrap_err();
            assert!(refused.to_string().contains("not a host name"), "{bad}: {refused}");
        }
    }

    #[test]
    fn the_data_directory_is_in_the_home_directory_unless_given() {
        let home = || Some(OsString::from("/home/dev"));
        let found = |given: Option<&str>| data_dir(given.map(Path::new), home()).unwrap();
        assert_eq!(found(None), Path::new("/home/dev/.liminal-builder"));
        assert_eq!(found(Some("")), Path::new("/home/dev/.liminal-builder"));
        assert_eq!(found(Some("~/data")), Path::new("/home/dev/data"));
        assert_eq!(found(Some("/data")), Path::new("/data"));
        assert!(data_dir(None, None).is_err());
        assert!(data_dir(Some(Path::new("/data")), None).is_ok());
    }
}
