//! Decides which links this host opens to others, and when: a table of addresses, without I/O.
//!
//! ```text
//! Waiting ──due──► Opening ──ok──► Open ──lost, silent──► Waiting
//!    ▲                └──failed──► Waiting (longer and longer)
//!    └── Standby ◄── its host is reached over a link that was opened elsewhere
//! ```
//!
//! Two hosts need one link. If both know each other's address, the host with the lower listening
//! address connects first and the other waits a moment. If both connected nevertheless, the host
//! with the greater name closes its own link once it has received something over the other's. An
//! address that was learnt from other hosts is treated like a configured one, except that it is
//! dropped when no host has been reached there for [`FORGET`].
//!
//! Always true: at most one link per address is being opened at a time; a link is closed as
//! redundant only if something arrived from its host over another one a moment ago; two hosts never
//! both do so.
//!
//! Not here: sessions and sockets (`keeper`), which host is reached over which session (`reach`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use umbel::coverage::Identity;
use umbel::replica::Name;

use super::reach::{Path, SessionId};
use crate::settings::Endpoint;

/// The first pause after a failed attempt; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts to reach a configured address.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause between attempts to reach an address learnt from other hosts.
const LONGEST_LEARNT_PAUSE: Duration = Duration::from_secs(30);
/// The first pause before a silent link is opened again; doubled each time.
const FIRST_SILENT_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a silent link is opened again.
const LONGEST_SILENT_PAUSE: Duration = Duration::from_secs(60);
/// How long the host that connects second waits for the first, plus [`SECOND_EACH`] per link.
const SECOND: Duration = Duration::from_millis(100);
const SECOND_EACH: Duration = Duration::from_millis(10);
/// How long the host that connects second waits after a link is lost.
const SECOND_AFTER_LOSS: Duration = Duration::from_millis(1500);
/// If something arrived from a host this recently over one link, no other link is needed.
const PROVEN: Duration = Duration::from_secs(8);
/// After this time without a link a learnt address is dropped.
const FORGET: Duration = Duration::from_secs(600);
/// Maximum number of learnt addresses.
const MAX_LEARNT: usize = 10_000;

/// The table of links that this host opens.
#[derive(Debug)]
pub(super) struct Links {
    me: Name,
    listen: Option<SocketAddr>,
    links: BTreeMap<String, Link>,
    /// After this time a silent path no longer counts as reaching its host. By then it has been
    /// tested.
    silence: Duration,
    random: u64,
}

/// A link that is open or should be.
#[derive(Debug)]
struct Link {
    endpoints: Vec<Endpoint>,
    is_configured: bool,
    /// The host at this address, once known.
    host: Option<Name>,
    state: State,
    /// Attempts that failed since the link was last open.
    failures: u32,
    /// How often it was reopened because nothing arrived over it.
    silences: u32,
    error: Option<String>,
    /// Why the host at this address is incompatible, if it is.
    refused: Option<String>,
    /// When the host was last reached here, or the address was learnt.
    reached: Duration,
    /// Whether something has arrived since it was opened.
    is_heard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting {
        until: Duration,
    },
    Opening,
    Open {
        session: SessionId,
        since: Duration,
    },
    Standby,
    /// The address is this host's own.
    Own,
}

/// An action for the keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Open a session to one of these addresses, and report to [`Links::opened`] under this key.
    Open { key: String, endpoints: Vec<Endpoint> },
    /// Close this session.
    Close(SessionId),
}

/// A link that is not open although it should be, for logs and `info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreached {
    pub(super) address: String,
    pub(super) error: Option<String>,
}

impl Links {
    pub(super) fn new(me: Name, listen: Option<SocketAddr>, silence: Duration, seed: u64) -> Self {
        Self { me, listen, links: BTreeMap::new(), silence, random: seed }
    }

    /// Sets the configured addresses: each inner list is one link. Returns the actions that close
    /// links which are no longer wanted.
    pub(super) fn configure(&mut self, now: Duration, wanted: Vec<Vec<Endpoint>>) -> Vec<Action> {
        let wanted: BTreeMap<String, Vec<Endpoint>> =
            wanted.into_iter().map(|endpoints| (key(&endpoints), endpoints)).collect();
        let count = wanted.len();
        let mut closed = Vec::new();
        self.links.retain(|key, link| {
            let keep = !link.is_configured || wanted.contains_key(key);
            if let (false, State::Open { session, .. }) = (keep, link.state) {
                closed.push(Action::Close(session));
            }
            keep
        });
        for (key, endpoints) in wanted {
            let until = now + self.head_start(&endpoints, count);
            let link = self.links.entry(key).or_insert_with(|| Link::new(endpoints, now, until));
            link.is_configured = true;
        }
        closed
    }

    /// Stores where a host listens; returns whether that is new. The host may have this host's own
    /// name: then both find out.
    pub(super) fn learn(&mut self, now: Duration, host: &Name, address: SocketAddr) -> bool {
        let endpoints = vec![Endpoint::from(address)];
        let key = key(&endpoints);
        if let Some(link) = self.links.get_mut(&key) {
            link.host.get_or_insert_with(|| host.clone());
            return false;
        }
        let learnt = self.links.values().filter(|link| !link.is_configured).count();
        // A loopback address belongs to another machine, unless this host listens on loopback too.
        let is_usable = self.listen.is_some_and(|own| {
            own != address && (own.ip().is_loopback() || !address.ip().is_loopback())
        });
        if learnt >= MAX_LEARNT || !is_usable {
            return false;
        }
        let wait = if self.me < *host { Duration::ZERO } else { SECOND_AFTER_LOSS };
        let until = now + self.jitter(wait);
        let mut link = Link::new(endpoints, now, until);
        link.host = Some(host.clone());
        self.links.insert(key, link);
        true
    }

    /// Handles the result of an attempt to open a link.
    pub(super) fn opened(&mut self, now: Duration, key: &str, result: Result<SessionId, String>) {
        let pause = self.pause_after_failure(key);
        let Some(link) = self.links.get_mut(key) else { return };
        match result {
            Ok(session) => {
                link.failures = 0;
                link.error = None;
                link.reached = now;
                link.is_heard = false;
                link.state = State::Open { session, since: now };
            }
            Err(error) => {
                link.failures += 1;
                link.error = Some(error);
                link.state = State::Waiting { until: now + pause };
            }
        }
    }

    /// Whether a session is still wanted; a link may have been removed while it was opened.
    pub(super) fn wants(&self, session: SessionId) -> bool {
        self.links.values().any(|link| link.session() == Some(session))
    }

    /// Handles a lost link: it is reopened at once.
    pub(super) fn lost(&mut self, now: Duration, session: SessionId) {
        if let Some(link) = self.of_mut(session) {
            link.state = State::Waiting { until: now };
            link.reached = now;
        }
    }

    /// Handles that a session leads to this host itself: the address is not tried again.
    pub(super) fn leads_here(&mut self, session: SessionId) -> Option<Action> {
        let link = self.of_mut(session)?;
        link.state = State::Own;
        Some(Action::Close(session))
    }

    /// Records which host of the cluster is at the other end of a session.
    pub(super) fn identify(&mut self, now: Duration, session: SessionId, host: &Name) {
        self.heard(now, session);
        if let Some(link) = self.of_mut(session) {
            (link.host, link.refused) = (Some(host.clone()), None);
        }
    }

    /// Records that an incompatible host is at the other end of a session.
    pub(super) fn refuse(&mut self, now: Duration, session: SessionId, why: &str) {
        self.heard(now, session);
        if let Some(link) = self.of_mut(session) {
            (link.host, link.refused) = (None, Some(why.to_owned()));
        }
    }

    /// Records that something arrived over a session.
    pub(super) fn heard(&mut self, now: Duration, session: SessionId) {
        if let Some(link) = self.of_mut(session) {
            link.silences = 0;
            link.reached = now;
            link.is_heard = true;
        }
    }

    /// Reopens a link because its host is silent, after a pause that grows each time. `None` as the
    /// session: the other host opened the silent link, so this host opens one of its own. Returns
    /// the pause, or `None` if there is no link to open.
    pub(super) fn reopen(
        &mut self,
        now: Duration,
        host: &Name,
        session: Option<SessionId>,
    ) -> (Option<Duration>, Option<Action>) {
        let jitter = self.jitter(Duration::ZERO);
        let mut links = self.links.values_mut();
        let link = match session {
            Some(session) => links.find(|link| link.session() == Some(session)),
            None => {
                links.find(|link| link.host.as_ref() == Some(host) && link.state == State::Standby)
            }
        };
        let Some(link) = link else { return (None, None) };
        let pause = doubled(FIRST_SILENT_PAUSE, link.silences, LONGEST_SILENT_PAUSE) + jitter;
        link.silences += 1;
        // The first time without a pause: this usually helps.
        let pause = if link.silences == 1 { Duration::ZERO } else { pause };
        link.state = State::Waiting { until: now + pause };
        (Some(pause), session.map(Action::Close))
    }

    /// The actions that are due now, given the paths over which each host is reached.
    pub(super) fn poll(
        &mut self,
        now: Duration,
        paths: impl Fn(&Name) -> Vec<Path>,
    ) -> Vec<Action> {
        self.forget(now);
        let mut actions = Vec::new();
        let (me, silence) = (self.me.clone(), self.silence);
        let own: Vec<SessionId> = self.links.values().filter_map(Link::session).collect();
        let waits = self.waits_after_loss();
        for (key, link) in &mut self.links {
            let paths = link.host.as_ref().map(&paths).unwrap_or_default();
            let others = || paths.iter().filter(|path| Some(path.session) != link.session());
            let is_reached = others().any(|path| path.silent_for < silence);
            let is_proven = others().any(|path| path.silent_for < PROVEN);
            match link.state {
                State::Waiting { .. } if is_proven => link.state = State::Standby,
                State::Waiting { until } if until <= now => {
                    link.state = State::Opening;
                    let endpoints = link.endpoints.clone();
                    actions.push(Action::Open { key: key.clone(), endpoints });
                }
                State::Standby if !is_reached => {
                    let wait = waits.get(key).copied().unwrap_or_default();
                    link.reached = now;
                    link.state = State::Waiting { until: now + wait };
                }
                State::Open { session, .. } => {
                    // A link to another incarnation of the name may lead to another host.
                    let life = paths.iter().find(|path| path.session == session);
                    let life = life.map(|path| path.life);
                    let mut same =
                        others().filter(|other| life.is_none_or(|life| life == other.life));
                    let is_redundant = same.any(|other| {
                        let is_first = match own.contains(&other.session) {
                            // This host has two links, to two addresses of the same host.
                            true => other.session < session,
                            false => link.host.as_ref().is_some_and(|host| *host < me),
                        };
                        is_first && other.silent_for < PROVEN
                    });
                    if is_redundant {
                        link.state = State::Standby;
                        actions.push(Action::Close(session));
                    }
                }
                State::Waiting { .. } | State::Opening | State::Standby | State::Own => {}
            }
        }
        actions
    }

    /// Drops learnt addresses at which no host has been reached for [`FORGET`].
    fn forget(&mut self, now: Duration) {
        self.links.retain(|_, link| {
            link.is_configured
                || !matches!(link.state, State::Waiting { .. })
                || now.saturating_sub(link.reached) < FORGET
        });
    }

    /// Sessions over which nothing has arrived although they have been open for longer than the
    /// limit.
    pub(super) fn mute(&self, now: Duration) -> Vec<SessionId> {
        let links = self.links.values().filter(|link| !link.is_heard);
        let open = links.filter_map(|link| match link.state {
            State::Open { session, since } if now.saturating_sub(since) > self.silence => {
                Some(session)
            }
            _ => None,
        });
        open.collect()
    }

    /// The sessions of open links.
    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.links.values().filter_map(Link::session)
    }

    /// Links that have been tried and are not open.
    pub(super) fn unreached(&self) -> Vec<Unreached> {
        let links = self.links.iter().filter(|(_, link)| {
            link.is_configured && matches!(link.state, State::Waiting { .. } | State::Opening)
        });
        links
            .map(|(key, link)| Unreached { address: key.clone(), error: link.error.clone() })
            .collect()
    }

    /// Which host is at each configured address; `routers` are the sessions that lead to routers.
    pub(super) fn identities(&self, routers: &[SessionId]) -> BTreeMap<String, Identity> {
        let configured = self.links.iter().filter(|(_, link)| link.is_configured);
        let identity = |link: &Link| match (&link.host, &link.refused) {
            _ if link.state == State::Own => Identity::NotAHost,
            _ if link.session().is_some_and(|session| routers.contains(&session)) => {
                Identity::NotAHost
            }
            (Some(host), _) => Identity::Host(host.clone()),
            (None, Some(why)) => Identity::Refused(why.clone()),
            (None, None) => Identity::Unknown,
        };
        configured.map(|(key, link)| (key.clone(), identity(link))).collect()
    }

    /// Whether every configured link is open, is not needed, or has failed at least once.
    pub(super) fn is_settled(&self) -> bool {
        self.links.values().filter(|link| link.is_configured).all(|link| match link.state {
            State::Waiting { .. } | State::Opening => link.failures > 0,
            State::Open { .. } | State::Standby | State::Own => true,
        })
    }

    /// How long to wait so that the other host makes the first attempt.
    fn head_start(&mut self, endpoints: &[Endpoint], count: usize) -> Duration {
        let (Some(own), [peer]) = (self.listen, endpoints) else { return Duration::ZERO };
        match peer.address().parse::<SocketAddr>() {
            Ok(peer) if peer < own => SECOND + SECOND_EACH * u32::try_from(count).unwrap_or(100),
            _ => Duration::ZERO,
        }
    }

    /// For each link on standby, how long to wait before opening it once its host is no longer
    /// reached.
    fn waits_after_loss(&mut self) -> BTreeMap<String, Duration> {
        let me = self.me.clone();
        let standby = self.links.iter().filter(|(_, link)| link.state == State::Standby);
        let second: Vec<(String, bool)> = standby
            .map(|(key, link)| (key.clone(), link.host.as_ref().is_some_and(|host| *host < me)))
            .collect();
        second
            .into_iter()
            .map(|(key, is_second)| {
                let wait = if is_second { SECOND_AFTER_LOSS } else { Duration::ZERO };
                (key, self.jitter(wait))
            })
            .collect()
    }

    fn pause_after_failure(&mut self, key: &str) -> Duration {
        let (failures, is_configured) =
            self.links.get(key).map_or((0, true), |link| (link.failures, link.is_configured));
        let longest = if is_configured { LONGEST_PAUSE } else { LONGEST_LEARNT_PAUSE };
        self.jitter(doubled(FIRST_PAUSE, failures, longest))
    }

    /// Adds a random time: up to a quarter, or up to 20 ms if that is more.
    fn jitter(&mut self, time: Duration) -> Duration {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let share = (self.random >> 40) as f64 / (1u64 << 24) as f64;
        time + (time / 4).max(Duration::from_millis(20)).mul_f64(share)
    }

    fn of_mut(&mut self, session: SessionId) -> Option<&mut Link> {
        self.links.values_mut().find(|link| link.session() == Some(session))
    }
}

impl Link {
    fn new(endpoints: Vec<Endpoint>, now: Duration, until: Duration) -> Self {
        Self {
            endpoints,
            is_configured: false,
            host: None,
            state: State::Waiting { until },
            failures: 0,
            silences: 0,
            error: None,
            refused: None,
            reached: now,
            is_heard: false,
        }
    }

    fn session(&self) -> Option<SessionId> {
        match self.state {
            State::Open { session, .. } => Some(session),
            _ => None,
        }
    }
}

/// The addresses of a link as text.
fn key(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(Endpoint::address).collect::<Vec<_>>().join(", ")
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    (first * (1 << times.min(16))).min(longest)
}

#[cfg(test)]
mod tests {
    use umbel::replica::Incarnation;

    use super::*;

    const QUIET: Duration = Duration::from_secs(12);
    const SOON: Duration = Duration::from_millis(1);

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 7447))
    }

    /// The table of host `me`, which listens at 10.0.0.5, with these peers.
    fn table(me: &str, peers: &[u8]) -> Links {
        let mut links = Links::new(name(me), Some(address(5)), QUIET, 1);
        let peers = peers.iter().map(|last| vec![Endpoint::from(address(*last))]);
        assert_eq!(links.configure(Duration::ZERO, peers.collect()), []);
        links
    }

    fn open(last: u8) -> Action {
        let endpoints = vec![Endpoint::from(address(last))];
        Action::Open { key: key(&endpoints), endpoints }
    }

    fn at(last: u8) -> String {
        address(last).to_string()
    }

    fn nobody(_: &Name) -> Vec<Path> {
        Vec::new()
    }

    fn path(session: u64, life: u64, silent_for: Duration) -> Path {
        Path { session: SessionId(session), life: Incarnation(life), silent_for }
    }

    fn heard_over(session: u64, silent_for: Duration) -> impl Fn(&Name) -> Vec<Path> {
        move |_| vec![path(session, 1, silent_for)]
    }

    #[test]
    fn the_host_with_the_lower_address_connects_first() {
        let mut links = table("fern", &[4, 6]);
        assert_eq!(links.poll(Duration::ZERO, nobody), [open(6)]);
        assert_eq!(links.poll(SECOND, nobody), [], "the other one has its turn");
        assert_eq!(links.poll(SECOND * 2, nobody), [open(4)], "but not for ever");
    }

    #[test]
    fn pauses_grow_after_failures_and_end_with_success() {
        let mut links = table("fern", &[6]);
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert_eq!(links.poll(now, nobody), [open(6)]);
            assert_eq!(links.poll(now + LONGEST_PAUSE * 10, nobody), [], "one attempt at a time");
            let failed = now;
            links.opened(now, &at(6), Err(String::from("refused")));
            assert_eq!(links.unreached()[0].error.as_deref(), Some("refused"));
            while links.poll_is_empty(now) {
                now += Duration::from_millis(10);
            }
            pauses.push(now - failed);
        }
        assert!(pauses[0] < FIRST_PAUSE * 2, "{pauses:?}");
        assert!(pauses[7] >= LONGEST_PAUSE && pauses[7] < LONGEST_PAUSE * 2, "{pauses:?}");
        assert_eq!(links.poll(now, nobody), [open(6)]);
        links.opened(now, &at(6), Ok(SessionId(9)));
        assert!(links.unreached().is_empty() && links.wants(SessionId(9)));
        links.lost(now, SessionId(9));
        assert_eq!(links.poll(now, nobody), [open(6)], "lost: at once");
    }

    impl Links {
        /// Whether nothing is due; changes nothing.
        fn poll_is_empty(&self, now: Duration) -> bool {
            !self
                .links
                .values()
                .any(|link| matches!(link.state, State::Waiting { until } if until <= now))
        }
    }

    #[test]
    fn of_two_links_between_two_hosts_the_lower_name_keeps_its_own() {
        for (me, other, closes) in [("lily", "fern", true), ("fern", "lily", false)] {
            let mut links = table(me, &[6]);
            links.poll(Duration::ZERO, nobody);
            links.opened(Duration::ZERO, &at(6), Ok(SessionId(3)));
            links.identify(Duration::ZERO, SessionId(3), &name(other));
            let silent = heard_over(0, PROVEN);
            assert_eq!(links.poll(SOON, silent), [], "the other link has not shown that it works");
            let actions = links.poll(SOON, heard_over(0, SOON));
            assert_eq!(!actions.is_empty(), closes, "{me}: {actions:?}");
            if closes {
                assert_eq!(actions, [Action::Close(SessionId(3))]);
                assert_eq!(links.poll(seconds(9), heard_over(0, SOON)), [], "on standby");
                assert_eq!(links.poll(seconds(10), nobody), [], "the other one has its turn");
                assert_eq!(links.poll(seconds(12), nobody), [open(6)]);
            }
        }
    }

    #[test]
    fn a_silent_host_is_tried_over_another_link() {
        // The host connected to this one, is linked, and sends nothing.
        let mut links = table("lily", &[6]);
        links.learn(Duration::ZERO, &name("fern"), address(6));
        assert_eq!(links.poll(SOON, heard_over(0, SOON)), []);
        let (pause, action) = links.reopen(seconds(20), &name("fern"), None);
        assert_eq!((pause, action), (Some(Duration::ZERO), None));
        assert_eq!(links.poll(seconds(20), heard_over(0, seconds(20))), [open(6)]);
        links.opened(seconds(20), &at(6), Ok(SessionId(4)));
        // It stays silent: the pauses grow.
        let mut last = Duration::ZERO;
        for round in 1..10 {
            let now = seconds(100 * round);
            let (pause, action) = links.reopen(now, &name("fern"), Some(SessionId(4)));
            let pause = pause.unwrap();
            assert_eq!(action, Some(Action::Close(SessionId(4))));
            assert!(pause > last || pause >= LONGEST_SILENT_PAUSE, "{pause:?} after {last:?}");
            last = pause;
            assert_eq!(links.poll(now + pause, nobody), [open(6)]);
            links.opened(now, &at(6), Ok(SessionId(4)));
        }
        links.heard(seconds(2000), SessionId(4));
        let (pause, _) = links.reopen(seconds(2001), &name("fern"), Some(SessionId(4)));
        assert_eq!(pause, Some(Duration::ZERO), "it was heard: as if for the first time");
    }

    #[test]
    fn learnt_addresses_are_linked_and_forgotten() {
        let mut links = table("fern", &[]);
        assert!(links.learn(Duration::ZERO, &name("lily"), address(6)));
        assert!(!links.learn(Duration::ZERO, &name("lily"), address(6)), "known");
        assert!(!links.learn(Duration::ZERO, &name("twin"), address(5)), "this host's address");
        let loopback = SocketAddr::from(([127, 0, 0, 1], 7447));
        assert!(!links.learn(Duration::ZERO, &name("rose"), loopback), "another machine's own");
        assert_eq!(links.poll(seconds(1), nobody), [open(6)]);
        links.opened(seconds(1), &at(6), Err(String::from("refused")));
        assert!(links.unreached().is_empty(), "nobody was told to wait for it");
        assert_eq!(links.poll(seconds(2), nobody), [open(6)]);
        links.opened(seconds(2), &at(6), Err(String::from("refused")));
        assert_eq!(links.poll(FORGET + seconds(9), nobody), []);
        assert!(links.links.is_empty());
    }

    #[test]
    fn a_link_to_oneself_is_closed_for_good() {
        let mut links = table("fern", &[6]);
        links.poll(Duration::ZERO, nobody);
        links.opened(Duration::ZERO, &at(6), Ok(SessionId(3)));
        assert_eq!(links.leads_here(SessionId(3)), Some(Action::Close(SessionId(3))));
        assert_eq!(links.poll(seconds(100), nobody), []);
        assert!(links.is_settled() && links.unreached().is_empty());
    }

    #[test]
    fn addresses_that_are_no_longer_configured_are_closed() {
        let mut links = table("fern", &[6, 7]);
        links.poll(Duration::ZERO, nobody);
        links.opened(Duration::ZERO, &at(6), Ok(SessionId(3)));
        let wanted = vec![vec![Endpoint::from(address(7))]];
        assert_eq!(links.configure(seconds(1), wanted), [Action::Close(SessionId(3))]);
        links.opened(seconds(1), &at(6), Ok(SessionId(4)));
        assert!(!links.wants(SessionId(4)), "opened too late");
    }

    #[test]
    fn of_two_addresses_of_one_host_one_is_linked() {
        let mut links = table("fern", &[6, 7]);
        links.poll(Duration::ZERO, nobody);
        for (last, session) in [(6, 3), (7, 4)] {
            links.opened(Duration::ZERO, &at(last), Ok(SessionId(session)));
            links.identify(Duration::ZERO, SessionId(session), &name("lily"));
        }
        let both = |lives: [u64; 2]| {
            move |_: &Name| vec![path(3, lives[0], SOON), path(4, lives[1], SOON)]
        };
        assert_eq!(links.poll(SOON, both([7, 9])), [], "two hosts of one name");
        assert_eq!(links.poll(SOON, both([7, 7])), [Action::Close(SessionId(4))]);
    }
}
