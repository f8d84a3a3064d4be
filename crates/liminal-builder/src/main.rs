//! The binary. All of it is in the library beside it, so that the release can be given completions and a man page.

fn main() -> std::process::ExitCode {
    liminal_builder::main()
}
