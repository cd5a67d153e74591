//! How this program was built.

/// For which system this was built, and how.
pub(crate) fn text() -> String {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let how = if cfg!(debug_assertions) { "debug" } else { "release" };
    let told = option_env!("UMBEL_BUILD").map(|told| format!(" {told}")).unwrap_or_default();
    format!("{arch}-{os} {how}{told}")
}
