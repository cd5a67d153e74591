//! How the threads of a host share processors: threads that answer clients preempt others soon
//! after they wake. The only `unsafe` code of this crate.
//!
//! This is only a hint, on Linux from version 6.12 on: other systems treat all threads alike. No
//! thread has a lower priority than others: a builder that yields to everything else on a machine
//! would leave a filter overfull for as long as the machine is busy.

use std::cell::Cell;

/// The time slice of threads that answer clients: a thread with a shorter slice than the running
/// one preempts it on waking, instead of waiting for the end of its slice, some milliseconds.
const SHORT_SLICE_NANOS: u64 = 100_000;

/// A runtime whose threads respond quickly: the one of `umbel serve`.
///
/// # Errors
/// If it cannot be started.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().on_thread_start(answer_soon).build()
}

/// Marks the calling thread as one that answers clients.
fn answer_soon() {
    set_slice(SHORT_SLICE_NANOS);
}

/// Marks the calling thread as one for long work: it gets the system's default time slice, even if
/// it was started by a thread that answers clients. Only the first call of a thread has an effect.
pub(crate) fn work_long() {
    thread_local! {
        static IS_SET: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_SET.replace(true) {
        set_slice(0);
    }
}

/// Yields to other threads that wait for this processor. Threads with long work call it every
/// hundred microseconds or so: otherwise Linux checks for waiting threads only at its next clock
/// tick, up to 4 ms later.
pub(crate) fn let_others_run() {
    std::thread::yield_now();
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe form of this system call is at hand")]
fn set_slice(slice_nanos: u64) {
    /// `struct sched_attr` of the first version of the system call.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        slice_nanos: u64,
        deadline_nanos: u64,
        period_nanos: u64,
    }
    let (this_thread, no_flags) = (0, 0);
    // SAFETY: the call takes numbers and changes no memory.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, this_thread) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        slice_nanos,
        deadline_nanos: 0,
        period_nanos: 0,
    };
    // SAFETY: the kernel reads `size` bytes of the structure, which lives through the call, and
    // changes no memory.
    let failed = unsafe {
        libc::syscall(libc::SYS_sched_setattr, this_thread, &raw const attributes, no_flags) != 0
    };
    if failed {
        let error = std::io::Error::last_os_error();
        tracing::debug!(%error, "the slices of a thread stay as they are");
    }
}

#[cfg(not(target_os = "linux"))]
fn set_slice(_slice_nanos: u64) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// The 19th field of `/proc/thread-self/stat`.
    fn nice() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, after_name) = stat.rsplit_once(") ").unwrap();
        after_name.split(' ').nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn slices_change_no_priority() {
        let before = nice();
        std::thread::spawn(move || {
            answer_soon();
            assert_eq!(nice(), before);
            work_long();
            assert_eq!(nice(), before);
        })
        .join()
        .unwrap();
    }
}
