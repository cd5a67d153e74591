//! The longest announced prefix of a name, over replicated keys.
//!
//! A host announces a prefix by adding its text as a key to a set, and withdraws it by
//! removing the key; replicas carry it to all others like any key. So any host answers from
//! its own memory: it asks for every prefix of the name, longest first, and stops at the first
//! that some host claims.
//!
//! Sans I/O: `who` is the host's own question (`Engine::who`), and what it returns is up to it.
//! Claims may be false, at the set's rate for each prefix that is asked: a host that must be
//! sure lets `who` return confirmed holders only, and the search goes on past false claims.

use super::Name;

/// What was found for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced<'n, H> {
    /// The longest prefix that somebody announces.
    pub prefix: &'n str,
    /// Who announces it, as the host names them.
    pub hosts: Vec<H>,
}

/// The longest prefix of `name` for which `who` names any host.
///
/// ```
/// use umbel::prefix::{Name, longest_announced};
///
/// let name: Name = "/video/2024/intro".parse()?;
/// let who = |prefix: &str| if prefix == "/video" { vec!["h1", "h7"] } else { vec![] };
/// let found = longest_announced(&name, who).expect("somebody announces /video");
/// assert_eq!((found.prefix, found.hosts), ("/video", vec!["h1", "h7"]));
/// # Ok::<(), umbel::prefix::ParseError>(())
/// ```
pub fn longest_announced<H>(
    name: &Name,
    mut who: impl FnMut(&str) -> Vec<H>,
) -> Option<Announced<'_, H>> {
    name.prefixes().find_map(|prefix| {
        let hosts = who(prefix);
        (!hosts.is_empty()).then_some(Announced { prefix, hosts })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank::{Bank, BatchCandidates};
    use crate::{KeyHasher, StandardFilter};

    #[test]
    fn a_bank_of_announced_prefixes_answers_with_the_longest_and_all_its_hosts() {
        let mut filters = [(); 3].map(|()| StandardFilter::for_target(100, 1e-9).unwrap());
        filters[0].insert("/video");
        filters[1].insert("/video/2024");
        filters[2].insert("/video/2024");
        filters[2].insert("/audio/a");
        let mut bank: Bank = Bank::new(KeyHasher::default());
        let columns: Vec<_> =
            filters.iter().map(|f| bank.add(f.scheme(), f.bits()).unwrap()).collect();
        let who = |prefix: &str| {
            let mut found = BatchCandidates::new();
            bank.who_batch(&[bank.hash(prefix.as_bytes())], &mut found);
            found.of(0).to_vec()
        };
        let ask = |name: &str| {
            let name: Name = name.parse().unwrap();
            longest_announced(&name, who).map(|found| (found.prefix.to_owned(), found.hosts))
        };
        assert_eq!(
            ask("/video/2024/intro/1"),
            Some(("/video/2024".to_owned(), columns[1..].to_vec()))
        );
        assert_eq!(ask("/video/2023"), Some(("/video".to_owned(), columns[..1].to_vec())));
        assert_eq!(ask("/videos/2024"), None, "components match whole");
        assert_eq!(ask("/audio"), None, "longer prefixes do not match shorter names");
    }
}
