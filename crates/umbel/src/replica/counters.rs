//! What a host counts.

/// What was counted since the host started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Messages that arrived.
    pub messages: u64,
    /// Messages that were refused: malformed, in another's name, of another cluster.
    pub refused: u64,
    /// Updates that had arrived already.
    pub duplicates: u64,
    /// Messages from or for incarnations that have ended.
    pub old_lives: u64,
    /// Updates whose base was not the image held here.
    pub gaps: u64,
    /// Images that differed from what the home announced.
    pub mismatches: u64,
    /// Images that a home published and that were held here already, from an earlier incarnation.
    pub same_bits: u64,
    /// Deltas applied.
    pub deltas: u64,
    /// Whole images installed.
    pub snapshots: u64,
    /// Pages accepted.
    pub pages: u64,
    /// Parts of missed changes accepted.
    pub parts: u64,
    /// How often missed changes were applied.
    pub caught_up: u64,
    /// Updates sent.
    pub updates_sent: u64,
    /// Their bytes, each counted once.
    pub update_bytes_sent: u64,
    /// Requests sent for lists, pages and changes.
    pub requests_sent: u64,
    /// Bytes of pages and changes sent in reply.
    pub page_bytes_sent: u64,
    /// Climbs and descents of own sets.
    pub rebuilds: u64,
    /// Messages and events dropped because their queue was full.
    pub dropped: u64,
}

impl Counters {
    /// Nothing counted yet.
    pub(crate) const ZERO: Self = Self {
        messages: 0,
        refused: 0,
        duplicates: 0,
        old_lives: 0,
        gaps: 0,
        mismatches: 0,
        same_bits: 0,
        deltas: 0,
        snapshots: 0,
        pages: 0,
        parts: 0,
        caught_up: 0,
        updates_sent: 0,
        update_bytes_sent: 0,
        requests_sent: 0,
        page_bytes_sent: 0,
        rebuilds: 0,
        dropped: 0,
    };
}
