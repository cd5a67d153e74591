//! The locks and atomics of this crate: in `umbel-model` those of a scheduler that chooses which
//! thread runs next, everywhere else those of the standard library and of crossbeam.
//!
//! `crates/umbel-model` compiles these sources once more, with `umbel_model` set, and its tests run
//! them under thousands of schedules. Code that several threads meet in takes its locks from here.
//! The scheduler takes every atomic access as sequentially consistent: what weaker orderings permit
//! is not explored.

pub(crate) use kinds::{
    AtomicBool, AtomicU64, AtomicUsize, Mutex, MutexGuard, ShardedLock, ShardedLockReadGuard,
    ShardedLockWriteGuard,
};
pub(crate) use std::sync::PoisonError;
pub(crate) use std::sync::atomic::Ordering;

#[cfg(not(umbel_model))]
mod kinds {
    pub(crate) use crossbeam_utils::sync::{
        ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard,
    };
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

#[cfg(umbel_model)]
mod kinds {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub(crate) use shuttle::sync::{
        Mutex, MutexGuard, RwLock as ShardedLock, RwLockReadGuard as ShardedLockReadGuard,
        RwLockWriteGuard as ShardedLockWriteGuard,
    };
}

/// A size: the usual one, or in the model a smaller one, with which a few keys exercise all code
/// paths.
pub(crate) const fn size(usual: usize, in_model: usize) -> usize {
    if cfg!(umbel_model) { in_model } else { usual }
}
