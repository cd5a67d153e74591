//! How this program was built.

/// The target and profile of this build, and the value of `UMBEL_BUILD` at build time.
pub(crate) fn text() -> String {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let how = if cfg!(debug_assertions) { "debug" } else { "release" };
    let build = option_env!("UMBEL_BUILD").map(|build| format!(" {build}")).unwrap_or_default();
    format!("{arch}-{os} {how}{build}")
}
