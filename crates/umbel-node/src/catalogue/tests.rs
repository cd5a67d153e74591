//! A set's keys in a folder, before and after the folder is reopened.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use umbel_store::{Options, Store};

use super::*;

const SET: SetNumber = SetNumber(7);

/// Opens the folder, passes its catalogue to `see`, and closes it.
fn opened<T>(folder: &Path, see: impl FnOnce(&mut FolderCatalogue) -> T) -> T {
    let store = Store::open(folder, Options::new()).expect("the folder opens");
    let (journal, thread) = Journal::start(store).expect("a thread");
    let seen = see(&mut FolderCatalogue::open(Arc::clone(&journal), SET));
    journal.close();
    thread.join().expect("it ends");
    seen
}

/// Every key with its component.
fn all(catalogue: &FolderCatalogue) -> BTreeMap<Vec<u8>, ComponentId> {
    let mut all = BTreeMap::new();
    catalogue.for_each(&mut |key, component| _ = all.insert(key.to_vec(), component));
    all
}

#[derive(Debug, Clone)]
enum Change {
    Insert(u8, u32),
    InsertNew(u8, u32),
    Remove(u8),
    /// To a component above all that were ever used.
    MoveAll,
    Reassign(u32),
    OpenAgain,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        4 => (0..20u8, 0..4u32).prop_map(|(key, id)| Change::InsertNew(key, id)),
        1 => (0..20u8, 0..4u32).prop_map(|(key, id)| Change::Insert(key, id)),
        3 => (0..20u8).prop_map(Change::Remove),
        1 => Just(Change::MoveAll),
        1 => (0..4u32).prop_map(Change::Reassign),
        1 => Just(Change::OpenAgain),
    ];
    proptest::collection::vec(change, 1..40)
}

/// Applies changes up to the next opening to the catalogue and to a plain map.
fn change(
    catalogue: &mut FolderCatalogue,
    expected: &mut BTreeMap<Vec<u8>, ComponentId>,
    floor: &mut u32,
    changes: &[Change],
) {
    for change in changes {
        match *change {
            Change::Insert(key, id) => {
                catalogue.insert(&[key], ComponentId(*floor + id));
                expected.insert(vec![key], ComponentId(*floor + id));
            }
            Change::InsertNew(key, id) => {
                let new = catalogue.insert_new(&[key], ComponentId(*floor + id));
                assert_eq!(new, !expected.contains_key([key].as_slice()));
                expected.entry(vec![key]).or_insert(ComponentId(*floor + id));
            }
            Change::Remove(key) => {
                assert_eq!(catalogue.remove(&[key]), expected.remove([key].as_slice()));
            }
            Change::MoveAll => {
                *floor += 10;
                catalogue.move_all(ComponentId(*floor));
                expected.values_mut().for_each(|id| *id = ComponentId(*floor));
            }
            Change::Reassign(id) => {
                let to = ComponentId(*floor + id);
                catalogue.reassign(&mut |_| to);
                expected.values_mut().for_each(|id| *id = to);
            }
            Change::OpenAgain => {}
        }
        assert_eq!(catalogue.len(), expected.len() as u64);
    }
    assert_eq!(all(catalogue), *expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_folder_remembers_every_key_and_its_component(changes in changes()) {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut expected, mut floor) = (BTreeMap::new(), 0);
        for part in changes.split_inclusive(|change| matches!(change, Change::OpenAgain)) {
            opened(folder.path(), |catalogue| {
                assert_eq!(all(catalogue), expected, "as it was closed");
                change(catalogue, &mut expected, &mut floor, part);
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A pass returns the keys that were held when it began, written or not, whatever changes
    /// meanwhile.
    #[test]
    fn a_pass_shows_the_keys_of_one_moment(
        before in prop::collection::vec((0..60u8, any::<bool>(), any::<bool>()), 0..100),
        after in prop::collection::vec((0..60u8, any::<bool>()), 0..60),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        opened(folder.path(), |folder| {
            for (key, is_added, is_written) in before {
                match is_added {
                    true => _ = folder.insert_new(&[key], ComponentId(0)),
                    false => _ = folder.remove(&[key]),
                }
                if is_written {
                    folder.journal.flush();
                }
            }
            let expected: Vec<u8> = (0..60).filter(|key| folder.contains(&[*key])).collect();
            let mut catalogue = HostCatalogue::Folder(folder.clone());
            assert!(catalogue.begin_pass());
            let (mut shown, mut after, mut more) = (Vec::new(), after.into_iter(), true);
            while more {
                if let Some((key, is_added)) = after.next() {
                    match is_added {
                        true => _ = catalogue.insert_new(&[key], ComponentId(0)),
                        false => _ = catalogue.remove(&[key]),
                    }
                }
                more = catalogue.pass_part(1, &mut |key| shown.push(key[0]));
                std::thread::yield_now();
            }
            shown.sort_unstable();
            assert_eq!(shown, expected);
        });
    }
}

#[test]
fn a_deleted_set_leaves_nothing_to_a_later_one_of_its_number() {
    let folder = tempfile::tempdir().expect("a folder");
    opened(folder.path(), |catalogue| {
        catalogue.insert_new(b"key", ComponentId(3));
        catalogue.move_all(ComponentId(9));
        catalogue.journal.delete_set("set");
        catalogue.journal.delete_keys(SET);
    });
    opened(folder.path(), |catalogue| {
        assert_eq!((catalogue.len(), catalogue.floor), (0, ComponentId(0)));
    });
}

#[test]
fn a_folder_of_a_newer_layout_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let newer = (layout::VERSION + 1).to_le_bytes();
    opened(folder.path(), |catalogue| {
        assert_eq!(catalogue.journal.check_layout(), Ok(()), "a new folder");
        assert_eq!(catalogue.journal.check_layout(), Ok(()), "one of this layout");
        catalogue.journal.put(layout::VERSION_NAME.into(), &newer);
    });
    opened(folder.path(), |catalogue| {
        let refused = catalogue.journal.check_layout().expect_err("newer");
        assert!(refused.contains("a newer umbel has written it (layout 2"), "{refused}");
        let kept = catalogue.journal.get(layout::VERSION_NAME, <[u8]>::to_vec);
        assert_eq!(kept.as_deref(), Some(&newer[..]));
    });
}
