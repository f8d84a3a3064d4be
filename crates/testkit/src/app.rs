//! One running server.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::http::{Response, exchange};
use crate::window::{Window, connect};
use crate::{programs, within};

/// The real program as a child process. It is killed when this is dropped; a data directory made for it goes too.
#[derive(Debug)]
pub struct TestApp {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    token: Option<String>,
    home: Arc<TempDir>,
}

/// How to start it.
#[derive(Clone, Debug)]
pub struct Builder {
    wrapper: Vec<OsString>,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    home: Arc<TempDir>,
}

impl TestApp {
    /// With an empty home and the defaults.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder() -> Builder {
        let home = TempDir::with_prefix("liminal-test-").unwrap_or_else(|error| panic!("no temporary home: {error}"));
        Builder { wrapper: Vec::new(), args: Vec::new(), environment: Vec::new(), home: Arc::new(home) }
    }

    /// Another one over the same home; the present one should have ended.
    pub fn again(&self) -> Builder {
        Builder { wrapper: Vec::new(), args: Vec::new(), environment: Vec::new(), home: Arc::clone(&self.home) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `127.0.0.1:<port>`, as the `Host` header has it.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// # Panics
    /// When the server was started without one.
    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_else(|| panic!("this server has no secret"))
    }

    /// The home directory of the server, and a good place for test projects.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn data_dir(&self) -> std::path::PathBuf {
        data_dir(&self.home)
    }

    /// # Panics
    /// When it has ended.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_else(|| panic!("the server has ended"))
    }

    /// A window that speaks the plain contract.
    pub async fn window(&self) -> Window {
        self.window_at("/ws").await
    }

    /// A window as our own page opens it.
    pub async fn view_window(&self) -> Window {
        self.window_at("/ws?view=1").await
    }

    async fn window_at(&self, path: &str) -> Window {
        let bearer = format!("Bearer {}", self.token());
        let opened = connect(self.address, path, &[("authorization", &bearer)]).await;
        opened.unwrap_or_else(|refused| panic!("the window was refused: {refused:?}"))
    }

    /// Opens the link with the secret, as a browser does, and returns the cookies it is given.
    ///
    /// # Panics
    /// When it is not let in.
    pub async fn sign_in(&self) -> String {
        let host = self.host();
        let link = format!("/?token={}", self.token());
        let answer = exchange(self.address, "GET", &link, &[("host", &host)], b"").await;
        assert_eq!(answer.status, 303, "{answer:?}");
        answer.cookies()
    }

    /// A request with the secret and nothing else of note.
    pub async fn request(&self, method: &str, path: &str, body: Option<&serde_json::Value>) -> Response {
        let bearer = format!("Bearer {}", self.token());
        let host = self.host();
        let mut headers = vec![("host", host.as_str()), ("authorization", bearer.as_str())];
        let body = body.map(ToString::to_string);
        if body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        exchange(self.address, method, path, &headers, body.as_deref().unwrap_or_default().as_bytes()).await
    }

    /// Waits until it prints a line that holds this text.
    ///
    /// # Panics
    /// When it ends without saying so.
    pub async fn until_printed(&mut self, text: &str) -> String {
        within(text, async {
            loop {
                match self.stdout.next_line().await {
                    Ok(Some(line)) if line.contains(text) => return line,
                    Ok(Some(_)) => {}
                    ended => panic!("the server never printed {text:?}: {ended:?}"),
                }
            }
        })
        .await
    }

    /// The same program as a client of this server: its home, and nothing of the machine's settings.
    pub fn command(&self, args: &[&str]) -> Command {
        command_at(self.home(), args)
    }

    /// Runs it to its end.
    pub async fn run(&self, args: &[&str]) -> Output {
        within("the command to end", self.command(args).output())
            .await
            .unwrap_or_else(|error| panic!("could not run the program: {error}"))
    }

    /// As `kill -9` does.
    pub async fn kill(&mut self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.ended().await
    }

    /// As Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.unwrap_or_else(|| panic!("a process has a positive id"));
        kill_process(pid, signal).unwrap_or_else(|error| panic!("could not signal the server: {error}"));
    }

    pub async fn ended(&mut self) -> ExitStatus {
        within("the server to end", self.child.wait()).await.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Builder {
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// A command that runs another in its own place, such as `nohup`.
    pub fn through(mut self, command: &[&str]) -> Self {
        self.wrapper = command.iter().map(Into::into).collect();
        self
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The home directory it will have.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn data_dir(&self) -> std::path::PathBuf {
        data_dir(&self.home)
    }

    /// Makes the data directory, as the server would, and puts a file into it.
    ///
    /// # Panics
    /// When it cannot.
    pub fn write(&self, name: &str, text: &str) {
        make_private(&self.data_dir());
        std::fs::write(self.data_dir().join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// # Panics
    /// When it does not come up.
    pub async fn start(self) -> TestApp {
        // Building it may take longer than any test should wait.
        let program = programs::liminal_builder();
        within("the server to start", self.try_start(program))
            .await
            .unwrap_or_else(|error| panic!("could not start the server: {error:#}"))
    }

    /// Its log goes to the test's own standard error.
    async fn try_start(self, program: &Path) -> anyhow::Result<TestApp> {
        let command_line: Vec<_> = self.wrapper.iter().map(Path::new).chain([program]).collect();
        let mut command = in_home(command_line.first().context("there is no program")?, self.home.path());
        command.args(&command_line[1..]).envs(self.environment);
        command.args(["--port", "0", "--no-open", "--log", "error"]).args(self.args);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().context("the program cannot be run")?;
        let stdout = child.stdout.take().context("it has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut data_dir = None;
        while let Some(line) = lines.next_line().await? {
            data_dir = line.split_once(", data in ").map(|(_, dir)| dir.to_owned()).or(data_dir);
            // Without a secret the link holds none, and is printed; with one, the place is.
            let with_secret = line.strip_prefix("Listening on http://");
            let Some(link) = with_secret.or(line.strip_prefix("Open http://")) else { continue };
            let address = link.trim_end_matches('/').parse()?;
            let token = match with_secret {
                Some(_) => {
                    let file = Path::new(&data_dir.context("it did not say where its data is")?).join("token");
                    Some(std::fs::read_to_string(file)?.trim().to_owned())
                }
                None => None,
            };
            return Ok(TestApp { address, token, stdout: lines, child, home: self.home });
        }
        bail!("it ended with {} before it printed where it listens", child.wait().await?)
    }
}

/// A directory for the user alone, whatever the umask: one that others may write to is refused.
///
/// # Panics
/// When it cannot be made.
pub fn make_private(directory: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
}

/// The program with these arguments, in this home.
pub fn command_at(home: &Path, args: &[&str]) -> Command {
    let mut command = in_home(programs::liminal_builder(), home);
    command.current_dir(home).args(args);
    command
}

fn in_home(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_harmless(name)));
    command.env("HOME", home).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Settings of the machine the tests run on must not reach the server under test.
fn is_harmless(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    !["LIMINAL_", "ACP_", "CLAUDE_", "CODEX_"].iter().any(|prefix| name.starts_with(prefix)) && name != "DISPLAY"
}

fn data_dir(home: &TempDir) -> std::path::PathBuf {
    home.path().join(".liminal-builder")
}
