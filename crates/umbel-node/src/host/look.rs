//! How the driver computes the coverage: what the protocol has of the hosts' sets, what greetings
//! report, and which hosts are at the configured addresses, combined by [`umbel::coverage`].

use std::time::Duration;

use umbel::coverage::{self, ConfiguredPeer, Gap, Identity};
use umbel::replica::Name;

use super::cluster::Cluster;
use super::coverage::Coverage;
use super::sets::State;

impl Cluster {
    /// Computes the coverage, for the driver; also returns the hosts that have not greeted this
    /// one.
    pub(crate) fn look(&self, now: Duration, me: &Name, state: &State) -> (Coverage, Vec<Name>) {
        let mut heard_of = state.protocol.heard_of(now);
        {
            let greetings = self.greetings();
            let is_mesh = state.protocol.mesh().is_some();
            for (host, gap) in &mut heard_of {
                if *gap != Some(Gap::Unreachable)
                    && let Some(why) = greetings.why_refused(host)
                {
                    *gap = Some(Gap::Refused(why.to_owned()));
                }
                if gap.is_none() && is_mesh {
                    *gap = greetings.gap_of(host, state.protocol.incarnation_of(host));
                }
            }
            if is_mesh {
                let hearsay = greetings.hearsay();
                heard_of.extend(hearsay.into_iter().map(|host| (host, Some(Gap::Unreachable))));
            }
        }
        let silent = heard_of.iter().filter(|(_, gap)| *gap == Some(Gap::NotGreeted));
        let silent = silent.map(|(host, _)| host.clone()).collect();
        // The first entry of a host counts: the one from the protocol.
        heard_of.reverse();
        let coverage = coverage::Coverage::new(me, self.configured_peers(), heard_of);
        let coverage = Coverage::from(&coverage);
        self.coverage.set(now, coverage.clone());
        (coverage, silent)
    }

    /// The peers that the settings name, and which host is at each address.
    fn configured_peers(&self) -> Vec<ConfiguredPeer> {
        let configured = self.configured.lock();
        let identities = match configured.is_empty() {
            true => Default::default(),
            false => self.network.identities(),
        };
        let peer = |(name, address): &(Option<Name>, Option<String>)| {
            let found = address.as_ref().and_then(|address| identities.get(address));
            let identity = found.cloned().unwrap_or(Identity::Unknown);
            ConfiguredPeer { name: name.clone(), address: address.clone(), identity }
        };
        configured.iter().map(peer).collect()
    }
}
