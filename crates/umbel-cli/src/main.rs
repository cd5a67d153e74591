//! The program `umbel`. Everything is in the library beside it: cargo compiles a library while
//! the crates it depends on are still being compiled, and a program only after all of them.

fn main() -> std::process::ExitCode {
    umbel_cli::run()
}
