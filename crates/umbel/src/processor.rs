//! Detects processor features at run time. One of the crate's three uses of `unsafe` (the others
//! are `prefetch` and `prefix::simd`).
//!
//! A crate is compiled for every processor of an architecture. Code that benefits from newer
//! instructions is compiled twice, and [`run`] chooses the version for this processor. Ordinary
//! code is enough: the compiler uses wider registers and better bit instructions by itself
//! (`bench/compare` shows the gain).
//!
//! Always true: an [`Avx2`] exists only if the processor was found to have the features.

/// Work to be compiled for the processor at hand. Implementations must mark `done` and everything
/// that it calls in inner loops as `inline(always)`: only inlined code is compiled for the newer
/// processor.
pub(crate) trait Work {
    /// The result of the work.
    type Done;
    /// Does the work.
    fn done(self) -> Self::Done;
}

/// Does `work` in the fastest available version.
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
    /// Detects the features.
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
    /// Not available on this architecture.
    pub(crate) fn detect() -> Option<Self> {
        None
    }

    /// Does `work` without special instructions.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Done {
        work.done()
    }
}
