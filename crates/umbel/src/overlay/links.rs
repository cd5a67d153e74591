//! The configured neighbours, and which of them are up.

use std::collections::BTreeMap;

use crate::replica::{Incarnation, Name};

/// The configured neighbours.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: BTreeMap<Name, Link>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Link {
    is_up: bool,
    /// Its incarnation, once it is known.
    life: Option<Incarnation>,
    /// Whether it is incompatible: its messages are refused.
    is_refused: bool,
}

impl Links {
    pub(super) fn new(neighbours: impl IntoIterator<Item = Name>) -> Self {
        Self { all: neighbours.into_iter().map(|name| (name, Link::default())).collect() }
    }

    /// Whether messages of this host are accepted.
    pub(super) fn knows(&self, host: &Name) -> bool {
        self.all.get(host).is_some_and(|link| !link.is_refused)
    }

    /// A message of a host arrived. Returns whether a neighbour is up by that.
    pub(super) fn heard(&mut self, host: &Name) -> bool {
        let link = self.all.get_mut(host).filter(|link| !link.is_refused);
        link.is_some_and(|link| !std::mem::replace(&mut link.is_up, true))
    }

    /// A host is alive. Returns whether a neighbour is up by that, or has a new incarnation.
    pub(super) fn alive(&mut self, host: &Name, life: Incarnation) -> bool {
        let Some(link) = self.all.get_mut(host).filter(|link| link.life <= Some(life)) else {
            return false;
        };
        let is_news = !link.is_up || link.life.is_some_and(|before| before < life);
        // A new incarnation may be compatible.
        link.is_refused &= link.life == Some(life);
        (link.life, link.is_up) = (Some(life), !link.is_refused);
        is_news && link.is_up
    }

    /// An incarnation of a host is gone. Returns whether a neighbour is down by that.
    pub(super) fn gone(&mut self, host: &Name, life: Incarnation) -> bool {
        let link = self.all.get_mut(host).filter(|link| link.life <= Some(life));
        link.is_some_and(|link| std::mem::replace(&mut link.is_up, false))
    }

    /// `fits` says whether a host is compatible. Returns whether a neighbour is down by that.
    pub(super) fn greeted(&mut self, host: &Name, fits: bool) -> bool {
        let Some(link) = self.all.get_mut(host) else { return false };
        link.is_refused = !fits;
        link.is_refused && std::mem::replace(&mut link.is_up, false)
    }

    /// The neighbours that are up.
    pub(super) fn up(&self) -> impl Iterator<Item = &Name> {
        self.all.iter().filter(|(_, link)| link.is_up).map(|(name, _)| name)
    }

    /// All neighbours: name, whether it is up, its incarnation.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Name, bool, Option<Incarnation>)> {
        self.all.iter().map(|(name, link)| (name, link.is_up, link.life))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn a_link_follows_the_lives_of_its_neighbour() {
        let (b, x) = (name("b"), name("x"));
        let mut links = Links::new([b.clone()]);
        assert!(!links.knows(&x) && !links.alive(&x, Incarnation(1)) && !links.heard(&x));
        assert!(links.heard(&b) && !links.heard(&b), "the first message is news");
        assert!(!links.alive(&b, Incarnation(5)), "it was heard of already");
        assert!(links.alive(&b, Incarnation(6)), "another life");
        assert!(!links.gone(&b, Incarnation(5)), "the end of an old life is no news");
        assert_eq!(links.up().count(), 1);
        assert!(links.gone(&b, Incarnation(6)) && !links.gone(&b, Incarnation(6)));
        assert_eq!(links.up().count(), 0);
        assert!(links.alive(&b, Incarnation(6)), "the same life may come back after a cut");
    }

    #[test]
    fn a_neighbour_that_does_not_fit_is_not_heard_until_it_does() {
        let b = name("b");
        let mut links = Links::new([b.clone()]);
        assert!(links.alive(&b, Incarnation(1)) && links.greeted(&b, false));
        assert!(!links.knows(&b) && !links.heard(&b) && !links.alive(&b, Incarnation(1)));
        assert!(links.alive(&b, Incarnation(2)) && links.knows(&b), "another life is heard");
        assert!(!links.greeted(&b, true) && links.knows(&b));
    }
}
