//! How a host's settings become an overlay's.

use std::collections::{BTreeMap, HashMap, VecDeque};

use umbel::replica::Incarnation;
use umbel::route::{Config, Counters};

use super::{Links, Overlay};
use crate::settings::{self, Settings};

impl Overlay {
    /// A host that has no set yet, and no link that is up.
    pub(crate) fn new(
        settings: &Settings,
        place: &settings::Overlay,
        incarnation: Incarnation,
    ) -> Self {
        // The set is filled in for every router.
        let (name, set) = (settings.name.clone(), settings.cluster.clone());
        let mut template = Config::new(name, incarnation, set, settings.hasher(), place.plan);
        template.is_measured = place.measured;
        template.walk = place.walk;
        template.policy = settings.set.policy;
        template.hello_every = settings.timing.announce;
        template.silence = settings.timing.silence;
        template.max_bits = settings.limits.filter_bits;
        template.seed = incarnation.0;
        Self {
            template,
            most_sets: settings.limits.sets,
            links: Links::new(place.links.iter().map(|link| link.name.clone())),
            sets: BTreeMap::new(),
            epochs: BTreeMap::new(),
            waiting: HashMap::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            changed: false,
            refused: 0,
            past: Counters::default(),
        }
    }
}
