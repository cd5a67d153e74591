//! How the threads of a host share processors: those that answer clients take the place of others
//! soon after they wake. The one piece of `unsafe` of this crate.
//!
//! Only a hint, on Linux from 6.12 on: other systems run all threads alike. No thread has a lower
//! priority than others: a builder that gives way to whatever else runs on a machine leaves a filter
//! overfull for as long as that is busy.

use std::cell::Cell;

/// A slice for threads that answer: a thread with a shorter slice than the one that runs takes its
/// place when it wakes, instead of waiting for the end of its slice, some milliseconds.
const SHORT_SLICE_NANOS: u64 = 100_000;

/// A runtime whose threads answer soon: the one of `umbel serve`.
///
/// # Errors
/// If it cannot be started.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().on_thread_start(answer_soon).build()
}

/// The calling thread answers clients.
fn answer_soon() {
    set_slice(SHORT_SLICE_NANOS);
}

/// The calling thread works for long: it has the system's slices, even if one that answers started
/// it. Only the first call of a thread does something.
pub(crate) fn work_long() {
    thread_local! {
        static IS_SET: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_SET.replace(true) {
        set_slice(0);
    }
}

/// Lets other threads run that wait for this processor. Threads that work for long call it every
/// hundred microseconds or so: by itself Linux looks for a thread that waits at the next tick of its
/// clock, up to 4 ms later.
pub(crate) fn let_others_run() {
    std::thread::yield_now();
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe form of this system call is at hand")]
fn set_slice(slice_nanos: u64) {
    /// `struct sched_attr`, as the first version of the system call has it.
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
