//! The protocol of a host: a mesh or an overlay, depending on its settings.
//!
//! What both support goes through the trait [`Protocol`]; what only one of them supports, through
//! [`HostProtocol::mesh`] or [`HostProtocol::overlay`].

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use umbel::design::ladder::Standing;
use umbel::mesh::{self, Engine, Work};
use umbel::overlay::{self, Overlay};
use umbel::protocol::Protocol;
use umbel::replica::{Home, Incarnation, Intervals, Name};
use umbel::route;

use crate::catalogue::HostCatalogue;
use crate::huge_rows::HugeRows;
use crate::memory;
use crate::settings::{self, Settings};

/// The protocol of a host.
#[derive(Debug)]
pub(crate) enum HostProtocol {
    /// Every host knows every other.
    Mesh(Box<Engine<HostCatalogue, HugeRows>>),
    /// Hosts know their neighbours.
    Overlay(Box<Overlay<HostCatalogue>>),
}

impl HostProtocol {
    /// A host without sets that knows no other host.
    pub(crate) fn new(settings: &Settings, incarnation: Incarnation) -> Self {
        match &settings.overlay {
            None => {
                let config = mesh_config(settings, incarnation);
                Self::Mesh(Box::new(Engine::with_rows(config)))
            }
            Some(place) => {
                let config = overlay_config(settings, place, incarnation);
                Self::Overlay(Box::new(Overlay::new(config)))
            }
        }
    }

    /// Adds an own set whose filter is built already. An overlay builds its own.
    pub(crate) fn adopt(
        &mut self,
        now: Duration,
        set: &Name,
        home: Home<HostCatalogue>,
        before: Option<Standing>,
    ) {
        if let Self::Mesh(engine) = self {
            engine.adopt(now, set, home, before);
        }
    }

    pub(crate) fn mesh(&self) -> Option<&Engine<HostCatalogue, HugeRows>> {
        match self {
            Self::Mesh(engine) => Some(engine),
            Self::Overlay(_) => None,
        }
    }

    pub(crate) fn mesh_mut(&mut self) -> Option<&mut Engine<HostCatalogue, HugeRows>> {
        match self {
            Self::Mesh(engine) => Some(engine),
            Self::Overlay(_) => None,
        }
    }

    pub(crate) fn overlay(&self) -> Option<&Overlay<HostCatalogue>> {
        match self {
            Self::Mesh(_) => None,
            Self::Overlay(overlay) => Some(overlay),
        }
    }

    pub(crate) fn overlay_mut(&mut self) -> Option<&mut Overlay<HostCatalogue>> {
        match self {
            Self::Mesh(_) => None,
            Self::Overlay(overlay) => Some(overlay),
        }
    }
}

impl Deref for HostProtocol {
    type Target = dyn Protocol<HostCatalogue> + Send;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Mesh(engine) => &**engine,
            Self::Overlay(overlay) => &**overlay,
        }
    }
}

impl DerefMut for HostProtocol {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Mesh(engine) => &mut **engine,
            Self::Overlay(overlay) => &mut **overlay,
        }
    }
}

fn mesh_config(settings: &Settings, incarnation: Incarnation) -> mesh::MeshConfig {
    let mut config = mesh::MeshConfig::new(settings.name.clone(), incarnation, settings.hasher());
    config.intervals = Intervals::default();
    config.announce_every = settings.timing.announce;
    config.grace = settings.timing.grace;
    config.silence = settings.timing.silence;
    config.forget = settings.timing.forget;
    config.max_absence = settings.timing.absence;
    config.max_bits = settings.limits.filter_bits;
    let usable = memory::usable();
    config.replica_bytes = settings.limits.replica_bytes.unwrap_or(usable / 4);
    config.own_bytes = settings.limits.own_bytes.unwrap_or(usable / 2);
    config.max_sets_per_peer = settings.limits.sets;
    config.max_peers = settings.limits.hosts;
    config.work = Work::Deferred;
    config.seed = incarnation.0;
    config
}

fn overlay_config(
    settings: &Settings,
    place: &settings::Overlay,
    incarnation: Incarnation,
) -> overlay::OverlayConfig {
    // Every router replaces the name of the set by its own.
    let (name, set) = (settings.name.clone(), settings.cluster.clone());
    let mut router =
        route::RouterConfig::new(name, incarnation, set, settings.hasher(), place.plan);
    router.is_measured = place.measured;
    router.walk = place.walk;
    router.policy = settings.set.policy;
    router.hello_every = settings.timing.announce;
    router.silence = settings.timing.silence;
    router.max_bits = settings.limits.filter_bits;
    router.seed = incarnation.0;
    let neighbours = place.links.iter().map(|link| link.name.clone()).collect();
    overlay::OverlayConfig { router, neighbours, max_sets: settings.limits.sets }
}
