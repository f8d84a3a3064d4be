//! `export`: a conversation as a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use tempfile::NamedTempFile;

use super::failure::{EXIT_CODES, Exit, Failure};
use super::session_name::resolve;
use crate::client::{Kind, Server};
use crate::terminal::{Stream, harmless};

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// The session: its id, or enough of it
    session: String,

    /// Markdown to read, JSON for programs, or one HTML file to open in a browser
    #[arg(long, value_enum, default_value_t = FileFormat::Md)]
    format: FileFormat,

    /// Mask keys, tokens and e-mail addresses
    #[arg(long)]
    redact: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace the file if it is there
    #[arg(long, requires = "output")]
    force: bool,

    /// Print one JSON object about the file: {"file", "format", "bytes"}
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    Md,
    Json,
    Html,
}

impl FileFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Md => "md",
            Self::Json => "json",
            Self::Html => "html",
        }
    }
}

pub(crate) async fn run(args: &Args, server: &Server) -> Result<ExitCode, Failure> {
    let mut target = Target::open(args)?;
    let session = resolve(&mut server.window(Kind::Plain).await?, &args.session).await?;
    let redact = if args.redact { "&redact=true" } else { "" };
    let path = format!("/api/session/{session}/export?format={}{redact}", args.format.name());
    let mut bytes = 0_u64;
    server
        .download(&path, |part| {
            bytes += part.len() as u64;
            target.write(part)
        })
        .await?;
    target.finish()?;
    if let Some(file) = &args.output {
        Stream::Out.line(&match args.json {
            true => json!({"file": file, "format": args.format.name(), "bytes": bytes}).to_string(),
            false => format!("Written to {}", harmless(&file.display().to_string())),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the file goes. A file gets its name when it is complete.
enum Target<'a> {
    /// A terminal: whole lines, without what could steer it.
    Terminal(Vec<u8>),
    Out,
    Device(File, &'a Path),
    Temporary {
        file: NamedTempFile,
        path: &'a Path,
        force: bool,
    },
}

impl<'a> Target<'a> {
    fn open(args: &'a Args) -> Result<Self, Failure> {
        let Some(path) = &args.output else {
            return Ok(if Stream::Out.is_terminal() { Self::Terminal(Vec::new()) } else { Self::Out });
        };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(Failure::usage(format!("{} is a directory: name a file.", path.display())));
            }
            Ok(found) if !found.is_file() => {
                let device = OpenOptions::new().write(true).open(path).map_err(|error| unwritable(path, &error))?;
                return Ok(Self::Device(device, path));
            }
            Ok(_) if !args.force => return Err(is_there(path)),
            _ => {}
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".liminal-export-").tempfile_in(directory);
        let file = file.map_err(|error| unwritable(path, &error))?;
        Ok(Self::Temporary { file, path, force: args.force })
    }

    fn write(&mut self, part: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Terminal(line) => {
                line.extend_from_slice(part);
                let end = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                let whole: Vec<u8> = line.drain(..end).collect();
                Stream::Out.write(&Stream::Out.quote(&String::from_utf8_lossy(&whole)))
            }
            Self::Out => io::stdout().write_all(part).map_err(|error| Failure::not_written(&error)),
            Self::Device(file, path) => file.write_all(part).map_err(|error| unwritable(path, &error)),
            Self::Temporary { file, path, .. } => file.write_all(part).map_err(|error| unwritable(path, &error)),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Terminal(rest) => Stream::Out.write(&Stream::Out.quote(&String::from_utf8_lossy(&rest))),
            Self::Out => io::stdout().flush().map_err(|error| Failure::not_written(&error)),
            Self::Device(_, _) => Ok(()),
            Self::Temporary { file, path, force } => {
                file.as_file().sync_all().map_err(|error| unwritable(path, &error))?;
                let done = if force { file.persist(path) } else { file.persist_noclobber(path) };
                match done {
                    Ok(_) => Ok(()),
                    Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(is_there(path)),
                    Err(error) => Err(unwritable(path, &error.error)),
                }
            }
        }
    }
}

fn is_there(path: &Path) -> Failure {
    Failure::new("FILE_EXISTS", format!("{} is there already.", path.display()))
        .with_detail("Name another file, or replace it with --force.")
        .with_exit(Exit::Usage)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new("NOT_WRITTEN", format!("Could not write {}: {error}", path.display()))
}
