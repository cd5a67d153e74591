//! File names generated from a seed, in place of the eDonkey trace of paper 4.
//!
//! The trace is no longer public, and paper 4 uses only the file names in it. These look like those
//! that people share, and no two are equal.

use crate::random::Random;

const WHO: [&str; 12] = [
    "the_larks",
    "nocturne",
    "Anna_K",
    "VA",
    "orchestra",
    "dj-umbra",
    "quartet",
    "field_notes",
    "Ensemble_7",
    "lighthouse",
    "moth",
    "old_harbour",
];
const WHAT: [&str; 12] = [
    "winter",
    "live_session",
    "part",
    "remix",
    "chapter",
    "episode",
    "lecture",
    "demo",
    "sketch",
    "overture",
    "interview",
    "backup",
];
const ENDING: [&str; 8] = ["mp3", "avi", "ogg", "zip", "pdf", "iso", "txt", "jpg"];

/// The name of file number `number`.
pub(crate) fn file(number: u64, random: &mut Random) -> String {
    let mut pick = |words: &[&'static str]| words[random.below(words.len())];
    format!("{} - {} {number}.{}", pick(&WHO), pick(&WHAT), pick(&ENDING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_alike_and_a_seed_repeats_them() {
        let names = |seed| {
            let mut random = Random::of_trial(seed, "names", 0);
            (0..1000).map(|number| file(number, &mut random)).collect::<Vec<_>>()
        };
        let distinct: std::collections::BTreeSet<_> = names(1).into_iter().collect();
        assert_eq!(distinct.len(), 1000);
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
    }
}
