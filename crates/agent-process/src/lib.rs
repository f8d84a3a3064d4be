//! Agents as child processes: started, cut into lines, stopped, never orphaned.
//!
//! Comes in: a command to run and lines for its stdin. Goes out: lines of its stdout, the end of its stderr and how it
//! ended. Kept out: JSON, protocols, which agent it is and when to restart it. Nothing here gives a byte a meaning.
//!
//! Between us and every agent stands a [guardian](guardian_entry), our own program executed again: it inherits the
//! agent's pipes, so it costs no latency, and sees to it that nothing the agent started outlives it or us, however
//! either of us ends. Unix only; what Linux gives and others do not is said there.
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
mod words;
mod writer;

pub use allocator::give_large_memory_back;
pub use command::{AgentCommand, StopLadder, find_program};
pub use detached::{DetachedError, detached_entry, start_detached};
pub use error::{LineError, NoAnswer, ParseError, SendError, SpawnError};
pub use exit::{ExitReport, ExitStatus};
pub use framing::{LINE_BYTES_MAX, Line};
pub use guardian::guardian_entry;
pub use handle::ProcessHandle;
pub use inherited::is_ignored;
pub use leftovers::{all_gone, end_leftovers};
pub use open_files::{processes_max, raise_open_files, reachable_open_files, with_original_open_files};
pub use process::AgentProcess;
pub use reader::LineReader;
pub use stderr::STDERR_TAIL_BYTES;
pub use writer::{LineWriter, QUEUE_BYTES_MAX};
