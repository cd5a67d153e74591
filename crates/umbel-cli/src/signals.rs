//! Catches signals that end the process, so that it can clean up first.

use std::io;
use std::task::Poll;

use tokio::signal::unix::{SignalKind, signal};

/// Calls `then`, in its own thread, with the first of these signals that arrives. After this call
/// the signals no longer end the process by themselves.
pub(crate) fn on_first<const N: usize>(
    kinds: [SignalKind; N],
    then: impl FnOnce(SignalKind) + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listening = {
        // Signals are caught from here on, not only once the thread runs.
        let _inside = runtime.enter();
        kinds.into_iter().map(|kind| Ok((kind, signal(kind)?))).collect::<io::Result<Vec<_>>>()
    };
    let mut listening = listening?;
    std::thread::spawn(move || {
        let first = runtime.block_on(std::future::poll_fn(|context| {
            let came = listening
                .iter_mut()
                .find_map(|(kind, signal)| signal.poll_recv(context).is_ready().then_some(*kind));
            came.map_or(Poll::Pending, Poll::Ready)
        }));
        then(first);
    });
    Ok(())
}
