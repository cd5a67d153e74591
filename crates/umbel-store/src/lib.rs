//! A durable catalogue: key → small value, from a thousand to a hundred million keys.

pub mod storage;
