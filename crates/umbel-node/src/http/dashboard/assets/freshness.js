// Freshness: how stale other hosts' replicas are against the target, update by update. The papers'
// Figure 10, live.

import { empty, h, replace, text, tile } from "./dom.js";
import { get, part } from "./api.js";
import { chart } from "./chart.js";
import { count, number, percent, plural, seconds } from "./format.js";
import { changed, hostNow, mergeHistory, store } from "./store.js";

const WINDOW = 60;

/** The charts of one set, for this view and for the set's page. */
export function freshnessCharts() {
  let span = 60;
  const choices = [[60, "1 min"], [300, "5 min"]].map(([length, label]) => h("button", { type: "button", "aria-pressed": length === span ? "true" : "false", onclick: () => choose(length) }, label));
  const choose = (length) => {
    span = length;
    choices.forEach((button, place) => button.setAttribute("aria-pressed", [60, 300][place] === span ? "true" : "false"));
    changed();
  };
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Time shown" }, choices);
  const miss = chart({
    label: "Share of keys that replicas deny, over the last five minutes", format: percent, target: "target", marksLabel: "update sent",
    series: [
      { key: "miss", label: "estimated here, of own keys", sign: "circle", tone: "one" },
      { key: "measured", label: "measured here, of other hosts' keys (last minute)", sign: "square", tone: "two" },
    ],
  });
  const ghost = chart({
    label: "Removed keys that replicas still claim, per key", format: percent, target: "target", marksLabel: "update sent",
    series: [{ key: "ghost", label: "ghosts per own key", sign: "diamond", tone: "one" }],
  });
  const rates = chart({
    label: "False positives and false negatives of the published copy on a random key", format: percent, target: "what the promise leaves to one replica",
    series: [
      { key: "plus", label: "f+ claims a random key", sign: "triangle", tone: "one" },
      { key: "minus", label: "f− differs from the filter at home", sign: "square", tone: "two" },
    ],
  });
  const late = chart({
    label: "Late lookups per second", format: number, height: 130,
    series: [{ key: "late", label: "lookups per second that came before their update", sign: "circle", tone: "three" }],
  });
  const element = h("div", { class: "charts" },
    h("section", { class: "card" }, h("div", { class: "row head" }, h("h2", null, "Misses"), choice), h("p", { class: "muted" }, "Keys that a host holds and the others' replicas deny. They grow with every added key and fall to zero with every update."), miss.element),
    h("section", { class: "card" }, h("h2", null, "Ghosts"), h("p", { class: "muted" }, "Keys that were removed and are still claimed: a lookup asks in vain."), ghost.element),
    h("section", { class: "card" }, h("h2", null, "f+ and f−"), h("p", { class: "muted" }, "The papers' rates: of a random key, of one replica."), rates.element),
    h("section", { class: "card" }, h("h2", null, "Late lookups"), h("p", { class: "muted" }, "Lookups that named nobody, although an update that came later claims the key. An upper bound."), late.element));

  function update(points, facts) {
    const now = hostNow();
    const shared = { now, span, marks: updates(points) };
    miss.update({ ...shared, target: facts.missTarget, lines: { miss: line(points, "miss"), measured: measured(points) } });
    ghost.update({ ...shared, target: facts.ghostTarget, lines: { ghost: line(points, "ghost") } });
    rates.update({ now, span, target: shareOf(facts.target, facts.hosts), lines: { plus: line(points, "false_positive"), minus: line(points, "disagreement") } });
    late.update({ now, span, lines: { late: perSecond(points, "late_lookups") } });
  }
  return { element, update };
}

/** The rate that each of so many replicas may have, so that a lookup over all keeps its promise. */
const shareOf = (promised, hosts) => (promised === null || !hosts ? null : 1 - (1 - promised) ** (1 / hosts));

export const line = (points, key) => points.filter((point) => point[key] !== null).map((point) => [point.t, point[key]]);

/** When updates were sent: between two points, drawn at the later one. */
export function updates(points) {
  const marks = [];
  for (let place = 1; place < points.length; place += 1) {
    if (points[place].updates > points[place - 1].updates) marks.push(points[place].t);
  }
  return marks;
}

/** The share of sampled members that were denied, over a window that ends at each point. */
function measured(points) {
  const out = [];
  let from = 0;
  for (const point of points) {
    while (points[from].t < point.t - WINDOW) from += 1;
    const members = point.members_sampled - points[from].members_sampled;
    const denied = point.members_denied - points[from].members_denied;
    // Fewer say nothing; less than before means that a host has left.
    if (members >= 20 && denied >= 0) out.push([point.t, denied / members]);
  }
  return out;
}

export function perSecond(points, key) {
  const out = [];
  for (let place = 1; place < points.length; place += 1) {
    const [before, point] = [points[place - 1], points[place]];
    if (point[key] === null || before[key] === null || point[key] < before[key]) continue;
    out.push([point.t, (point[key] - before[key]) / Math.max(0.001, point.t - before.t)]);
  }
  return out;
}

export function freshness(root, name) {
  const picker = h("select", { "aria-label": "Set", onchange: () => (location.hash = `#/freshness/${encodeURIComponent(picker.value)}`) });
  const tiles = { miss: tile("Missed now"), ghost: tile("Ghosts now"), updates: tile("Updates"), late: tile("Late lookups") };
  const charts = freshnessCharts();
  const body = h("div", null, h("div", { class: "tiles" }, ...Object.values(tiles).map((one) => one.element)), charts.element);
  const nothing = empty("No set yet", "Add a key, and this page shows how fast other hosts hear of it.");
  const problem = h("p", { class: "problem" });
  root.append(h("div", { class: "row head" }, h("h1", null, "Freshness"), h("label", { class: "picker" }, "Set ", picker)), problem, nothing, body);
  let detail = null;
  let chosen = null;

  async function choose(set) {
    chosen = set;
    detail = null;
    const answer = await get(`/dashboard/sets/${part(set)}`);
    if (chosen !== set) return;
    if (!answer.ok) return text(problem, answer.problem);
    text(problem, "");
    detail = answer.data;
    mergeHistory(set, detail.history);
  }

  function update() {
    const names = [...store.sets.values()].sort((one, other) => other.own - one.own || other.items_everywhere - one.items_everywhere).map((set) => set.name);
    body.hidden = names.length === 0;
    nothing.hidden = names.length > 0;
    if (names.length === 0) return;
    const set = store.sets.has(name) ? name : names[0];
    if (picker.dataset.names !== names.join("\n")) {
      picker.dataset.names = names.join("\n");
      replace(picker, names.map((one) => h("option", { value: one }, one)));
    }
    picker.value = set;
    if (set !== chosen) choose(set);
    const row = store.sets.get(set);
    const points = store.points.get(set) ?? [];
    const last = points.at(-1);
    const target = row.miss_target;
    const missed = last?.miss ?? row.miss;
    tiles.miss.set(percent(missed), target === null ? (row.own ? "no miss target in its policy" : "this host has no keys in it") : `target ${percent(target)}`, target !== null && missed > target ? "warn" : "");
    tiles.ghost.set(percent(last?.ghost ?? row.ghost), detail?.ghost_target ? `target ${percent(detail.ghost_target)}` : "");
    const marks = updates(points);
    const span = points.length > 1 ? last.t - points[0].t : 0;
    tiles.updates.set(count(marks.length), span > 0 ? `sent in the last ${seconds(span)}` : "");
    tiles.late.set(percent(row.late_share), last ? `${plural(last.late_lookups, "lookup")} since the start` : "");
    charts.update(points, { missTarget: target, ghostTarget: detail?.ghost_target ?? null, target: row.target, hosts: detail?.info.expected_hosts });
  }
  return { title: "Freshness", update };
}
