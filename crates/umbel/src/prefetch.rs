//! Prefetches memory. One of the crate's three uses of `unsafe` (the others are `processor` and
//! `prefix::simd`).
//!
//! A batch of lookups in a filter larger than the cache waits for memory most of the time;
//! prefetching the lines of the next keys while testing this one overlaps the waits
//! (`bench/compare` shows the gain). On processors without a stable prefetch it does nothing.

/// Prefetches the cache line that holds `slice[index]`; does nothing if the index is out of range.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    if let Some(element) = slice.get(index) {
        fetch(std::ptr::from_ref(element).cast());
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
#[expect(unsafe_code, reason = "the processor's prefetch has no safe form on stable Rust")]
fn fetch(address: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: prefetching is a hint that reads nothing and never faults, whatever the
    // address; SSE is part of the x86_64 baseline.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline(always)]
fn fetch(_address: *const i8) {}
