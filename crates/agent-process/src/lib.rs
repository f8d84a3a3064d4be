//! Agents as child processes: spawned, read line by line, stopped, never orphaned.
//!
//! Comes in: a command to run and lines for its stdin. Goes out: lines of its stdout, the end of its stderr and how it
//! ended. Kept out: JSON, protocols, which agent it is and when to restart it. The bytes have no meaning here.
//!
//! Between the server and every agent there is a [guardian](guardian_entry), our own program executed again. The agent
//! reads and writes the pipes directly, so the guardian adds no latency. It makes sure that no descendant of the agent
//! outlives the agent or the server, however either ends. Unix only; [`guardian_entry`] lists what only Linux offers.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use agent_process::{AgentCommand, AgentProcess, StopLadder};
//!
//! let command = AgentCommand::parse("codex-acp --verbose")?.current_dir("/src/project");
//! let (mut stdout, stdin, process) = AgentProcess::spawn(command).await?.split();
//! stdin.send("{}").await?;
//! while let Some(line) = stdout.next_line().await? {
//!     println!("{}", line.to_str_lossy());
//! }
//! println!("{}", process.stop(StopLadder::default()).await);
//! # Ok(())
//! # }
//! ```

mod allocator;
mod command;
mod detached;
mod error;
mod exit;
pub mod framing;
mod guardian;
mod handle;
mod inherited;
mod leftovers;
mod lifeline;
mod monitor;
mod open_files;
mod process;
mod procfs;
mod reader;
mod stderr;
mod writer;

pub use allocator::return_large_memory;
pub use command::{AgentCommand, StopLadder, find_program};
pub use detached::{DetachedError, detached_entry, start_detached};
pub use error::{LineError, NoAnswer, ParseError, SendError, SpawnError};
pub use exit::{ExitReport, ExitStatus};
pub use framing::{LINE_BYTES_MAX, OutputLine};
pub use guardian::guardian_entry;
pub use handle::ProcessHandle;
pub use inherited::is_ignored;
pub use leftovers::{all_gone, end_leftovers};
pub use open_files::{processes_max, raise_open_files, reachable_open_files, with_original_open_files};
pub use process::AgentProcess;
pub use reader::LineReader;
pub use stderr::STDERR_TAIL_BYTES;
pub use writer::{LineWriter, QUEUE_BYTES_MAX};
