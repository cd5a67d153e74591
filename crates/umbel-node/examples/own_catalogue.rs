//! A service that indexes its objects already keeps no second copy of the keys: its own index
//! is the catalogue.
//!
//! `cargo run -p umbel-node --example own_catalogue`

use std::collections::BTreeMap;
use std::error::Error;

use umbel::catalogue::Catalogue;
use umbel::filter::ComponentId;
use umbel_node::{Host, LocalNetwork};

/// What the service knows of each object; the last field is all that umbel adds.
#[derive(Debug, Default)]
struct Index {
    objects: BTreeMap<Vec<u8>, (u64, ComponentId)>,
}

impl Catalogue for Index {
    fn contains(&self, key: &[u8]) -> bool {
        self.objects.contains_key(key)
    }

    fn insert(&mut self, key: &[u8], component: ComponentId) {
        self.objects.entry(key.to_vec()).or_insert((0, component)).1 = component;
    }

    fn remove(&mut self, key: &[u8]) -> Option<ComponentId> {
        self.objects.remove(key).map(|(_, component)| component)
    }

    fn for_each(&self, show: &mut dyn FnMut(&[u8], ComponentId)) {
        self.objects.iter().for_each(|(key, (_, component))| show(key, *component));
    }

    fn len(&self) -> u64 {
        self.objects.len() as u64
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut index = Index::default();
    for (key, bytes) in [("layer/4f53", 1_000_000), ("layer/9a0c", 2_500_000)] {
        index.objects.insert(key.into(), (bytes, ComponentId(0)));
    }

    let network = LocalNetwork::new();
    let registry = Host::builder()
        .name("registry")
        .local(&network)
        .own_catalogue("layers", Box::new(index))
        .start()
        .await?;
    registry.add_key("layers", b"layer/77e1").await?;
    println!("{:?}", registry.who_has("layers", b"layer/4f53")?);
    println!("{} layers", registry.set_info("layers")?.items);
    registry.stop().await;
    Ok(())
}
