//! What this processor can do beyond the oldest of its kind, asked at run time: one of the
//! crate's three pieces of `unsafe` (the others are `prefetch` and `prefix::simd`).
//!
//! A crate is compiled for every processor of an architecture. Work that gains from the
//! instructions of newer ones is compiled twice, and [`run`] takes what the processor has.
//! Ordinary code is enough: the compiler uses wider registers and better bit instructions by
//! itself (`bench/compare` shows the gain).
//!
//! Always true: an [`Avx2`] exists only where the processor has been asked.

/// Work to be compiled for the processor at hand. Whoever does it marks `done` and all that it
/// calls in its inner loops as `inline(always)`: only what is inlined is compiled anew.
pub(crate) trait Work {
    /// What comes of it.
    type Done;
    /// Does it.
    fn done(self) -> Self::Done;
}

/// Does `work` in the fastest way there is.
#[inline(always)]
pub(crate) fn run<W: Work>(avx2: Option<Avx2>, work: W) -> W::Done {
    match avx2 {
        Some(avx2) => avx2.run(work),
        None => work.done(),
    }
}

/// The proof that this processor has AVX2 (and the bit instructions of its time).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Avx2 {
    /// Asks the processor.
    pub(crate) fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        all.then_some(Self(()))
    }

    /// Does `work`, compiled for this processor.
    #[inline]
    #[expect(unsafe_code, reason = "only we know that the processor was asked")]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Done {
        // SAFETY: an `Avx2` exists only if `detect` found every feature of `compiled`.
        unsafe { compiled(work) }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn compiled<W: Work>(work: W) -> W::Done {
    work.done()
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
impl Avx2 {
    /// There is none here.
    pub(crate) fn detect() -> Option<Self> {
        None
    }

    /// Does `work` as it is.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Done {
        work.done()
    }
}
