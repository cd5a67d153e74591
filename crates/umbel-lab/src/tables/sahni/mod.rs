//! Paper 2 by Sahni: Bloom filters before differential files, and for longest-prefix match.
//!
//! The slides have no experiment of their own; these are what they describe, run.

pub(crate) mod files;
pub(crate) mod filter_error;
pub(crate) mod prefix;
