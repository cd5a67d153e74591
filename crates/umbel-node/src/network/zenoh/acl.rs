//! Access control between hosts with certificates.
//!
//! zenoh drops, at the receiver, what the certificate of the other end does not permit. A host may
//! publish, reply and declare itself alive under its own name, send requests as itself, and receive
//! everything of its cluster. A host with an unknown name may do nothing.

use serde_json::{Value, json};
use umbel::replica::Name;

/// zenoh's access control for these hosts of a cluster.
pub(super) fn rules<'a>(cluster: &Name, hosts: impl Iterator<Item = &'a Name>) -> Value {
    let everything = [format!("umbel/{cluster}/**"), "umbel-hello/**".to_owned()];
    let mut rules = vec![
        json!({
            "id": "told",
            "permission": "allow",
            "flows": ["egress"],
            "messages": [
                "put", "delete", "declare_subscriber", "query", "declare_queryable", "reply",
                "liveliness_token", "declare_liveliness_subscriber", "liveliness_query",
            ],
            "key_exprs": everything,
        }),
        json!({
            "id": "hears",
            "permission": "allow",
            "flows": ["ingress"],
            "messages": [
                "declare_subscriber", "declare_liveliness_subscriber", "liveliness_query",
            ],
            "key_exprs": everything,
        }),
    ];
    let (mut subjects, mut policies) = (Vec::new(), Vec::new());
    for host in hosts {
        let (says, asks) = (format!("says {host}"), format!("asks {host}"));
        rules.push(json!({
            "id": says,
            "permission": "allow",
            "flows": ["ingress"],
            "messages": ["put", "declare_queryable", "reply", "liveliness_token"],
            "key_exprs": [format!("umbel/{cluster}/{host}/**"), format!("umbel-hello/{host}")],
        }));
        rules.push(json!({
            "id": asks,
            "permission": "allow",
            "flows": ["ingress"],
            "messages": ["query"],
            "key_exprs": [format!("umbel/{cluster}/*/requests/{host}")],
        }));
        subjects.push(json!({ "id": host.as_str(), "cert_common_names": [host.as_str()] }));
        policies
            .push(json!({ "rules": ["told", "hears", says, asks], "subjects": [host.as_str()] }));
    }
    json!({
        "enabled": true,
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    })
}
