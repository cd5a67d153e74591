// Overview: who is heard, how complete answers are, and all sets with what they promise.

import { empty, field, h, replace, text, tile } from "./dom.js";
import { bytes, count, inOrder, percent, plural } from "./format.js";
import { hostMap, sentence, standing, summary } from "./host_map.js";
import { store } from "./store.js";
import { bar } from "./chart.js";

const PAGE = 60;

const COLUMNS = [
  { key: "name", label: "Set", text: true },
  { key: "items", label: "Own keys" },
  { key: "items_everywhere", label: "All keys" },
  { key: "replicas", label: "Replicas" },
  { key: "rung", label: "Rung" },
  { key: "memory", label: "Memory" },
  { key: "target", label: "False rate: one replica / promised per lookup" },
  { key: "miss", label: "Missed now / target" },
  { key: "problem", label: "State", text: true },
];

export function overview(root) {
  const map = hostMap();
  const tiles = {
    hosts: tile("Hosts known"), keys: tile("Keys at all hosts"), sets: tile("Sets"), memory: tile("Memory for replicas"),
  };
  const notice = h("div", { class: "notices" });
  const hostList = h("ul", { class: "host-list" });
  const table = setTable();
  const log = h("ul", { class: "log" });
  root.append(
    h("h1", null, "Overview"), notice,
    h("div", { class: "tiles" }, ...Object.values(tiles).map((one) => one.element)),
    h("div", { class: "columns" },
      h("section", { class: "card wide" }, h("h2", null, "Hosts"), map.element),
      h("section", { class: "card" }, h("h2", null, "What needs attention"), hostList, h("h2", null, "Recent events"), log)),
    h("section", { class: "card" }, h("h2", null, "Sets"), table.element));

  function update() {
    const { status } = store;
    const hosts = [...store.hosts.values()].sort((one, other) => inOrder(one.name, other.name));
    map.update(hosts.slice(0, 400));
    const complete = status.hosts_known === status.hosts_expected;
    tiles.hosts.set(`${count(status.hosts_known)} of ${count(status.hosts_expected)}`, summary(hosts), complete ? "" : "warn");
    let keys = 0;
    let own = 0;
    for (const set of store.sets.values()) {
      keys += set.items_everywhere;
      own += set.items ?? 0;
    }
    tiles.keys.set(count(keys), `${count(own)} of them here; a key at two hosts counts twice`);
    tiles.sets.set(count(store.setsTotal), `${plural(status.replicas, "replica")}, ${count(status.replicas_behind)} catching up`);
    const used = status.replica_bytes_limit > 0 ? status.replica_bytes / status.replica_bytes_limit : 0;
    tiles.memory.set(bytes(status.replica_bytes), status.replica_bytes_limit > 0 ? `${used < 0.001 ? "below 0.1 %" : percent(used)} of ${bytes(status.replica_bytes_limit)}` : "", used > 0.9 ? "warn" : "");
    notices(status);
    attention(hosts);
    replace(log, store.events.slice(0, 6).map((event) => h("li", null, words(event))));
    if (store.events.length === 0) replace(log, h("li", { class: "muted" }, "Nothing happened since this page was opened."));
    table.update();
  }

  function notices(status) {
    const all = [];
    if (status.catalogue_failure) all.push(["bad", `Changes are refused, questions are answered: ${status.catalogue_failure}`]);
    if (!status.durable) all.push(["info", "This host keeps its keys in memory only: they are lost when it stops."]);
    const refusals = status.refusals ?? [];
    refusals.forEach((refusal) => all.push(["warn", `Not accepted: ${refusal}`]));
    const others = status.not_accepted - refusals.length;
    if (others > 0) all.push(["warn", `${count(others)} more ${others === 1 ? "is" : "are"} not accepted; umbel hosts names all.`]);
    for (const [which, days] of status.expiring ?? []) {
      const name = { clients: "certificate for clients", peers: "certificate for other hosts", peers_authority: "authority's certificate" }[which] ?? which;
      const when = days < 0 ? "has expired" : days < 1 ? "expires within a day" : `expires in ${plural(days, "day", "days")}`;
      all.push([days < 2 ? "bad" : "warn", `The ${name} ${when}: umbel config certs makes new ones, and they are read without a restart.`]);
    }
    const key = JSON.stringify(all);
    if (notice.dataset.key === key) return;
    notice.dataset.key = key;
    replace(notice, all.map(([tone, line]) => h("p", { class: `notice ${tone}` }, line)));
  }

  function attention(hosts) {
    const waiting = hosts.filter((host) => host.state !== "self" && standing(host).tone !== "ok");
    const sets = [...store.sets.values()].filter((set) => set.problem);
    const lines = [
      ...waiting.slice(0, 8).map((host) => h("li", { class: standing(host).tone }, sentence(host))),
      ...sets.slice(0, 8).map((set) => h("li", { class: "warn" }, h("a", { href: `#/set/${encodeURIComponent(set.name)}` }, set.name), `: ${set.problem}`)),
    ];
    const hidden = Math.max(0, waiting.length - 8) + Math.max(0, sets.length - 8);
    if (hidden > 0) lines.push(h("li", { class: "muted" }, `and ${count(hidden)} more`));
    if (lines.length === 0) lines.push(h("li", { class: "ok" }, "Nothing: every expected host is known, and every set keeps its promises."));
    replace(hostList, lines);
  }
  return { title: "Overview", update };
}

function words(event) {
  const { host, set } = event;
  switch (event.event) {
    case "host_up": return `${host} is heard of`;
    case "host_suspected": return `${host} disappeared; its replicas still answer`;
    case "host_down": return `${host} is gone; its replicas answer no more`;
    case "rebuilt": return `the filter of ${set} was built in another length`;
    case "link_reopened": return `the link to ${host} was opened again`;
    case "name_taken": return "another host has this host's name";
    default: return event.event;
  }
}

function setTable() {
  let sort = { key: "problem", down: true };
  let shown = PAGE;
  let filter = "";
  const rows = new Map();
  const search = h("input", { type: "search", placeholder: "part of a name", oninput: () => { filter = search.value.toLowerCase(); shown = PAGE; update(); } });
  const body = h("tbody");
  const headers = COLUMNS.map((column) => h("th", { scope: "col", class: column.text ? "" : "number" },
    h("button", { class: "sort", onclick: () => { sort = { key: column.key, down: sort.key === column.key ? !sort.down : !column.text || column.key === "problem" }; update(); } }, column.label)));
  const note = h("p", { class: "muted" });
  const more = h("button", { class: "quiet", onclick: () => { shown += PAGE; update(); } }, "Show more");
  const box = h("div", { class: "scroll sets", tabindex: 0, role: "region", "aria-label": "Sets" }, h("table", null, h("thead", null, h("tr", null, headers)), body));
  const nothing = empty("No set yet", "A set begins with its first key: ", h("code", null, "umbel add images cat.png"), ".");
  const element = h("div", null, field("Filter", search), box, nothing, h("div", { class: "row" }, note, more));

  const value = (set, key) => (key === "target" ? (set.estimated ?? -1) / (set.target || 1) : key === "miss" ? (set.miss ?? -1) / (set.miss_target || 1) : set[key] ?? -1);
  function compare(one, other) {
    const [a, b] = [value(one, sort.key), value(other, sort.key)];
    const order = typeof a === "string" || typeof b === "string" ? inOrder(String(a), String(b)) : a - b;
    // Sets with a problem first, then the largest.
    if (order === 0) return other.items_everywhere - one.items_everywhere || inOrder(one.name, other.name);
    return sort.down ? -order : order;
  }

  function update() {
    const all = [...store.sets.values()].filter((set) => set.name.toLowerCase().includes(filter));
    all.sort(compare);
    const visible = all.slice(0, shown);
    box.hidden = store.sets.size === 0;
    nothing.hidden = store.sets.size > 0;
    more.hidden = all.length <= shown;
    headers.forEach((header, place) => {
      const here = COLUMNS[place].key === sort.key;
      header.setAttribute("aria-sort", here ? (sort.down ? "descending" : "ascending") : "none");
    });
    const cut = store.setsTotal > store.sets.size ? ` The ${count(store.sets.size)} that matter most of ${count(store.setsTotal)} are listed.` : "";
    text(note, store.sets.size > 0 ? `${count(visible.length)} of ${count(all.length)} shown.${cut}` : "");
    const elements = visible.map((set) => {
      let row = rows.get(set.name);
      if (!row) rows.set(set.name, (row = setRow(set.name)));
      row.update(set);
      return row.element;
    });
    if (elements.some((element, place) => body.children[place] !== element) || body.children.length !== elements.length) body.replaceChildren(...elements);
    if (rows.size > 2000) rows.clear();
  }
  return { element, update };
}

function setRow(name) {
  const cells = COLUMNS.slice(1).map((column) => h("td", { class: column.text ? "" : "number" }));
  const element = h("tr", { "data-set": name }, h("th", { scope: "row" }, h("a", { href: `#/set/${encodeURIComponent(name)}` }, name)), cells);
  const [items, everywhere, replicas, rung, memory, target, miss, state] = cells;
  let last = null;
  return {
    element,
    update(set) {
      if (set === last) return;
      last = set;
      text(items, set.own ? count(set.items) : "–");
      text(everywhere, count(set.items_everywhere));
      text(replicas, set.behind > 0 ? `${count(set.replicas)} (${count(set.behind)} catching up)` : count(set.replicas));
      text(rung, set.rung === null ? "–" : `2^${set.rung}`);
      text(memory, bytes(set.memory));
      text(target, set.target === null ? "–" : pair(percent(set.estimated), percent(set.target)));
      const share = set.miss_target ? set.miss / set.miss_target : null;
      replace(miss, set.miss === null ? "–" : pair(percent(set.miss), set.miss_target === null ? "none" : percent(set.miss_target)), share === null || set.miss === null ? null : bar(share, share > 1 ? "warn" : ""));
      replace(state, set.problem ? h("span", { class: "tag warn" }, "! ", set.problem) : h("span", { class: "tag ok" }, "✓ as promised"));
    },
  };
}

/** A measured value and its target: a line breaks between them, never before a percent sign. */
const pair = (value, target) => `${value.replace(" ", "\u00a0")} / ${target.replace(" ", "\u00a0")}`;
