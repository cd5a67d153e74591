//! A feed of a large cluster that does not exist, in place of the host's own.

use serde_json::json;

use super::browser::Browser;

/// From the next page on, the browser's event source tells of so many hosts and sets; half of the
/// rows change with every tick.
pub(super) fn feed(browser: &Browser, hosts: u64, sets: u64) {
    let script = SOURCE.replace("HOSTS", &hosts.to_string()).replace("SETS", &sets.to_string());
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
}

/// Runs before the page's own scripts; `longest` is the longest task in milliseconds.
const SOURCE: &str = r#"
window.ticks = 0;
window.longest = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, Math.round(task.duration));
}).observe({ entryTypes: ["longtask"] });
const pad = (n, width) => String(n).padStart(width, "0");
const set = (n, round) => [`objects-of-tenant-${pad(n, 4)}`, n % 2, 1000 + n + round, 100000 + n + round, HOSTS - 1, n % 7 === 0 ? 1 : 0, 17, 4194304, 0.01, 0.004, 0.001 * (round % 10), 0.01, 0.002, 0.001, 0.003, n % 100 === 99 ? "21 hosts have this set, and its plan expects 8" : ""];
const host = (n, round) => [n === 0 ? "cache-000" : `cache-${pad(n, 3)}`, n === 0 ? "self" : n % 20 === 19 ? "gone" : "up", n % 20 === 19 ? "disappeared without leaving" : "", SETS, 100000 + round, (n + round) % 10 === 0 ? 3 : 0, 1, 0, 0, null];
const point = (t) => [t, 100000, 0.005 + 0.005 * Math.sin(t), 0.01, 0.004, 0.002, 1000 * t, t, 10 * t, Math.floor(t), 100 * t, 10000 * t, 50 * t, 0.2, 200 * t];
const all = (n, make, round) => Array.from({ length: n }, (_, k) => make(k, round));
const status = { name: "cache-000", cluster: "synthetic", version: "0", build: "", overlay: false, ready: true, complete: true, hosts_known: HOSTS, hosts_expected: HOSTS, missing: [], durable: true, catalogue_failure: null, replica_bytes: 1e9, replica_bytes_limit: 4e9, own_bytes: 1e6, not_accepted: 0, replicas: 99000, replicas_behind: 12 };
const common = { status, gone_sets: [], gone_hosts: [], sets_total: SETS, hosts_total: HOSTS };
window.EventSource = class extends EventTarget {
  constructor() {
    super();
    this.readyState = 1;
    const send = (name, data) => this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
    setTimeout(() => send("snapshot", { ...common, t: 1000, sets: all(SETS, set, 0), hosts: all(HOSTS, host, 0), tracked: [],
      set_columns: ["name", "own", "items", "items_everywhere", "replicas", "behind", "rung", "memory", "target", "estimated", "miss", "miss_target", "measured_miss", "late_share", "ghost", "problem"],
      host_columns: ["name", "state", "reason", "sets", "items", "behind", "lag_epochs", "lag", "fresh", "http"],
      point_columns: ["t", "items", "miss", "ghost", "false_positive", "disagreement", "members_sampled", "members_denied", "late_lookups", "updates", "bytes", "full_bytes", "rule_bytes", "rule_max_miss", "received_bytes"] }), 10);
    this.timer = setInterval(() => {
      const round = (window.ticks += 1);
      const t = 1000 + round / 2;
      const points = Object.fromEntries(all(24, (n) => [`objects-of-tenant-${pad(2 * n + 1, 4)}`, point(t)]));
      send("tick", { t, points, changes: { ...common, sets: all(SETS, set, round).filter((_, n) => n % 2 === round % 2), hosts: all(HOSTS, host, round) } });
    }, 500);
  }
  close() {
    clearInterval(this.timer);
  }
};
window.EventSource.CLOSED = 2;
"#;
