// Plan: how large, how often and how many bytes, before a set is made.

import { field, h, replace, text, tile } from "./dom.js";
import { get } from "./api.js";
import { bytes, count, number, percent, seconds } from "./format.js";
import { store } from "./store.js";

const FIELDS = [
  ["items", "Keys per host", "100000", ""],
  ["hosts", "Number of hosts", "32", ""],
  ["adds_per_second", "Keys added per second, per host", "10", ""],
  ["removes_per_second", "Keys removed per second, per host", "10", ""],
  ["miss", "Share of keys that replicas may deny", "0.01", "0.01 is 1 %; at most 0.5"],
  ["false_positive", "Chance that a lookup names a wrong host", "0.01", "of a key that nobody has"],
  ["longest", "Seconds until others know a new key", "1", "empty: no limit but the share above"],
];

/** What was entered last: it stays when another view is shown. */
const entered = new Map();

export function plan(root) {
  const inputs = new Map();
  const form = h("form", { class: "card plan", onsubmit: (event) => event.preventDefault(), oninput: () => soon() });
  for (const [name, label, start, hint] of FIELDS) {
    const hosts = name === "hosts" && store.status?.hosts_expected > 1 ? String(store.status.hosts_expected) : start;
    const input = h("input", { name, inputmode: "decimal", value: entered.get(name) ?? hosts, autocomplete: "off" });
    inputs.set(name, input);
    form.append(field(label, input, hint));
  }
  const tiles = {
    memory: tile("Memory of a host"), every: tile("An update every"), update: tile("Size of an update"),
    sent: tile("Sent by a host"), wire: tile("On the wire"), full: tile("As whole filters"), join: tile("To join"), wrong: tile("Wrong names"),
  };
  const problem = h("p", { class: "problem", role: "status" });
  const command = h("code", { class: "command" });
  const filter = h("p", { class: "muted" });
  root.append(h("h1", null, "Plan"),
    h("p", { class: "lead" }, "What the replicas of a set cost if every host holds the same number of keys. The numbers are averages from the library's model; ", h("code", null, "umbel plan replica"), " prints the same ones."),
    h("div", { class: "columns plan-columns" }, form,
      h("section", { class: "card" }, problem, h("div", { class: "tiles" }, ...Object.values(tiles).map((one) => one.element)), filter, h("h2", null, "Run this on every host"), command)));
  let timer = null;
  let asked = 0;

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(calculate, 120);
  }

  async function calculate() {
    const query = new URLSearchParams();
    for (const [name, input] of inputs) {
      const value = input.value.trim().replaceAll(",", "");
      entered.set(name, input.value);
      if (value !== "") query.set(name, value);
    }
    const round = (asked += 1);
    const answer = await get(`/v1/plan/replica?${query}`);
    if (round !== asked) return;
    text(problem, answer.ok ? "" : answer.problem);
    root.classList.toggle("stale", !answer.ok);
    if (!answer.ok) return;
    const p = answer.data;
    tiles.memory.set(bytes(p.memory_bytes_per_host), "without its catalogue");
    tiles.every.set(seconds(p.seconds_between_updates), "of each host");
    tiles.update.set(bytes(p.bytes_per_update), "on average");
    tiles.sent.set(`${bytes(p.sent_bytes_per_second_per_host)}/s`, "updates, to all others");
    tiles.wire.set(`${bytes(p.wire_bytes_per_second_per_host)}/s`, "with announcements and headers");
    tiles.full.set(`${bytes(p.full_broadcast_sent_bytes_per_second_per_host)}/s`, "if updates were whole filters");
    tiles.join.set(bytes(p.join_bytes_per_host), "received by a new host, at most");
    tiles.wrong.set(number(p.false_hosts_per_lookup), "per lookup of an absent key");
    text(filter, `Each replica has ${count(p.bits)} bits (rung ${p.rung}) and ${p.hashes} hashes, has room for ${count(p.takes)} keys, and claims ${percent(p.replica_false_positive)} of absent keys.`);
    const [items, hosts, rate] = ["items", "hosts", "false_positive"].map((name) => query.get(name));
    replace(command, `umbel reserve SET --capacity ${items} --hosts ${hosts} --false-positive ${rate} --policy ${p.policy}`);
  }
  calculate();
  return { title: "Plan", update() {}, unmount: () => clearTimeout(timer) };
}
