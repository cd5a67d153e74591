//! The program `umbel`. All code is in the library next to it: cargo can compile a library while
//! the crates it depends on are still being compiled, but a program only after all of them.

fn main() -> std::process::ExitCode {
    umbel_cli::run()
}
