//! Hosts of one name: which of them is believed, and which of them stops.
//!
//! While the life of a host that is believed still replies, another life of its name is refused: it
//! is told so, and stops if it finds the other one replying too. Other hosts decide by whom they
//! believe; where they do not tell, the later life gives way. A life that has gone, or does not
//! reply, is replaced at once.
//!
//! Always true: a name has one entry, and lives that are refused stay refused until the one that is
//! believed is gone.

use std::collections::HashMap;

use umbel::replica::{Incarnation, Name};

/// Lives that appeared while another life of their name was believed.
#[derive(Debug, Default)]
pub(crate) struct Rivals(HashMap<Name, Rival>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rival {
    /// The life that is believed.
    held: Incarnation,
    /// The other one.
    life: Incarnation,
}

impl Rivals {
    /// Another life of a name appeared than the one that is believed: whether it is to be found out
    /// if that one still replies.
    pub(crate) fn appeared(&mut self, host: &Name, held: Incarnation, life: Incarnation) -> bool {
        let rival = Rival { held, life };
        let last = self.0.insert(host.clone(), rival);
        last != Some(rival)
    }

    /// It was found out whether the life that is believed replies. Returns whether the other one is
    /// to be believed now; if not, it is refused. `None`: one of them is gone meanwhile.
    pub(crate) fn tested(
        &mut self,
        host: &Name,
        held: Incarnation,
        life: Incarnation,
        replies: bool,
    ) -> Option<bool> {
        self.0.get(host).filter(|rival| **rival == Rival { held, life })?;
        if !replies {
            self.0.remove(host);
        }
        Some(!replies)
    }

    /// A life of a host is gone. Returns the life that takes its place, if one waits for that.
    pub(crate) fn gone(&mut self, host: &Name, life: Incarnation) -> Option<Incarnation> {
        let rival = *self.0.get(host)?;
        if rival.held == life || rival.life == life {
            self.0.remove(host);
        }
        (rival.held == life).then_some(rival.life)
    }
}

/// Whether a host stops that has found another life of its name to reply, given the lives of that
/// name that the other hosts believe; 0 where they know of none.
pub(crate) fn must_stop(own: Incarnation, other: Incarnation, believed: &[u64]) -> bool {
    let count = |life: Incarnation| believed.iter().filter(|believed| **believed == life.0).count();
    let (for_own, for_other) = (count(own), count(other));
    for_other > for_own || (for_other == for_own && own > other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Incarnation = Incarnation(7);
    const SECOND: Incarnation = Incarnation(9);

    fn fern() -> Name {
        Name::new("fern").unwrap()
    }

    #[test]
    fn a_life_is_refused_while_the_one_that_is_believed_replies() {
        let mut rivals = Rivals::default();
        assert!(rivals.appeared(&fern(), FIRST, SECOND));
        assert!(!rivals.appeared(&fern(), FIRST, SECOND), "it is being found out");
        assert_eq!(rivals.tested(&fern(), FIRST, SECOND, true), Some(false));
        assert_eq!(rivals.gone(&fern(), Incarnation(1)), None, "somebody else's token");
        assert_eq!(rivals.gone(&fern(), FIRST), Some(SECOND), "it takes its place at once");
        assert_eq!(rivals.gone(&fern(), SECOND), None);
    }

    #[test]
    fn a_life_is_believed_if_the_one_before_does_not_reply() {
        let mut rivals = Rivals::default();
        assert!(rivals.appeared(&fern(), FIRST, SECOND));
        assert_eq!(rivals.tested(&fern(), FIRST, SECOND, false), Some(true));
        assert_eq!(rivals.tested(&fern(), FIRST, SECOND, true), None);
        assert!(rivals.appeared(&fern(), FIRST, SECOND));
        assert_eq!(rivals.gone(&fern(), SECOND), None, "it went again");
        assert_eq!(rivals.tested(&fern(), FIRST, SECOND, false), None);
    }

    #[test]
    fn others_decide_who_stops_and_the_later_one_does_where_they_cannot() {
        assert!(must_stop(SECOND, FIRST, &[7, 7, 0]) && !must_stop(FIRST, SECOND, &[7, 7, 0]));
        // The first one hung, and was replaced; now it is back.
        assert!(must_stop(FIRST, SECOND, &[9, 9]) && !must_stop(SECOND, FIRST, &[9, 9]));
        for undecided in [&[][..], &[0, 0], &[7, 9], &[5]] {
            assert!(must_stop(SECOND, FIRST, undecided), "{undecided:?}");
            assert!(!must_stop(FIRST, SECOND, undecided), "{undecided:?}");
        }
    }
}
