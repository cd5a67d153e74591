// Traffic: what updates cost, beside what two other ways of keeping replicas would have cost.

import { empty, h, replace, text, tile } from "./dom.js";
import { get, part } from "./api.js";
import { bar, chart } from "./chart.js";
import { bytes, percent, plural, seconds, times } from "./format.js";
import { hostNow, mergeHistory, store } from "./store.js";
import { perSecond } from "./freshness.js";

/** Bytes since the first point: umbel, the dirty-bit rule, whole filters. */
function since(points) {
  const own = points.filter((point) => point.bytes !== null);
  if (own.length < 2) return null;
  const [first, last] = [own[0], own.at(-1)];
  return {
    span: last.t - first.t, own,
    sent: last.bytes - first.bytes, full: last.full_bytes - first.full_bytes, rule: last.rule_bytes - first.rule_bytes,
    updates: last.updates - first.updates, ruleMiss: last.rule_max_miss,
    lines: {
      sent: own.map((point) => [point.t, point.bytes - first.bytes]),
      full: own.map((point) => [point.t, point.full_bytes - first.full_bytes]),
      rule: own.map((point) => [point.t, point.rule_bytes - first.rule_bytes]),
    },
  };
}

export function traffic(root, name) {
  const picker = h("select", { "aria-label": "Set", onchange: () => (location.hash = `#/traffic/${encodeURIComponent(picker.value)}`) });
  const tiles = { sent: tile("Sent by umbel"), full: tile("As whole filters"), rule: tile("10 % dirty-bit rule"), received: tile("Received") };
  const bars = h("div", { class: "compare" });
  const total = chart({
    label: "Bytes of updates since the first point", format: bytes, log: 32, height: 240,
    series: [
      { key: "sent", label: "umbel", sign: "circle", tone: "one" },
      { key: "rule", label: "10 % dirty-bit rule (model)", sign: "triangle", tone: "three" },
      { key: "full", label: "whole filters", sign: "square", tone: "two" },
    ],
  });
  const rate = chart({
    label: "Bytes per second", format: (value) => `${bytes(value)}/s`, inBytes: true,
    series: [
      { key: "sent", label: "sent", sign: "circle", tone: "one" },
      { key: "received", label: "received from others", sign: "diamond", tone: "three" },
    ],
  });
  const body = h("div", null,
    h("div", { class: "tiles" }, ...Object.values(tiles).map((one) => one.element)),
    h("section", { class: "card" }, h("h2", null, "The same changes, three ways"), bars),
    h("section", { class: "card" }, h("h2", null, "Since the first point"), h("p", { class: "muted" }, "Each update is counted once, however many hosts receive it. Every step of the scale is 32 times as much."), total.element),
    h("section", { class: "card" }, h("h2", null, "Now"), rate.element),
    h("section", { class: "card" }, h("h2", null, "How this is counted"),
      h("dl", { class: "terms" },
        h("dt", null, "umbel"), h("dd", null, "Counted: the bytes of this host's updates."),
        h("dt", null, "whole filters"), h("dd", null, "Counted: the plain filter's length at each of these updates. What a full broadcast would have sent at the same moments."),
        h("dt", null, "10 % dirty-bit rule"), h("dd", null, "Modelled: Summary Cache's rule sends when a tenth of the bits differ. Which bits differ follows from the keys that came and went, and an update is taken to have the fewest bytes that information theory allows. It sends little, because its replicas miss far more meanwhile: the shares stand beside the bars."))));
  const nothing = empty("Nothing is published yet", "This host has no set of its own with a history. Add keys, and their updates are counted here.");
  const problem = h("p", { class: "problem" });
  root.append(h("div", { class: "row head" }, h("h1", null, "Traffic"), h("label", { class: "picker" }, "Set ", picker)), problem, nothing, body);
  let chosen = null;
  // The set whose history is here. Sums over the points since the page was opened would mislead.
  let loaded = null;

  async function choose(set) {
    chosen = set;
    const answer = await get(`/dashboard/sets/${part(set)}`);
    if (chosen !== set) return;
    loaded = set;
    text(problem, answer.ok ? "" : answer.problem);
    if (answer.ok) mergeHistory(set, answer.data.history);
  }

  function update() {
    const names = [...store.sets.values()].filter((set) => set.own).sort((one, other) => other.items - one.items).map((set) => set.name);
    body.hidden = names.length === 0;
    nothing.hidden = names.length > 0;
    if (names.length === 0) return;
    const set = names.includes(name) ? name : names[0];
    if (picker.dataset.names !== names.join("\n")) {
      picker.dataset.names = names.join("\n");
      replace(picker, names.map((one) => h("option", { value: one }, one)));
    }
    picker.value = set;
    if (set !== chosen) choose(set);
    if (set !== loaded) return;
    const points = store.points.get(set) ?? [];
    const sums = since(points);
    if (!sums) return;
    const span = `in ${seconds(sums.span)}`;
    tiles.sent.set(bytes(sums.sent), `${plural(sums.updates, "update")} ${span}`);
    const more = times(sums.full, sums.sent);
    tiles.full.set(bytes(sums.full), more ? `${more} as much` : "");
    tiles.rule.set(bytes(sums.rule), sums.rule > 0 ? `a model; misses up to ${percent(sums.ruleMiss)}` : "a model; not due yet");
    const [first, last] = [points[0], points.at(-1)];
    tiles.received.set(bytes(Math.max(0, last.received_bytes - first.received_bytes)), `from other hosts, ${span}`);
    const most = Math.max(sums.sent, sums.full, sums.rule, 1);
    const kept = `misses up to ${percent(Math.max(0, ...sums.own.map((point) => point.miss ?? 0)))}`;
    replace(bars, [
      ["umbel", sums.sent, kept, ""],
      ["10 % dirty-bit rule", sums.rule, `misses up to ${percent(sums.ruleMiss)} (model)`, "three"],
      ["whole filters", sums.full, kept, "two"],
    ].map(([label, value, note, tone]) => h("div", { class: "compare-row" }, h("b", null, label), bar(value / most, tone), h("span", { class: "number" }, bytes(value)), h("span", { class: "muted" }, note))));
    const now = hostNow();
    total.update({ now, lines: sums.lines });
    rate.update({ now, lines: { sent: smooth(perSecond(points, "bytes")), received: smooth(perSecond(points, "received_bytes")) } });
  }
  return { title: "Traffic", update };
}

/** Averages over five seconds: updates come one at a time. */
function smooth(line) {
  const out = [];
  let from = 0;
  let sum = 0;
  line.forEach(([t, value], place) => {
    sum += value;
    while (line[from][0] < t - 5) sum -= line[from++][1];
    out.push([t, Math.max(0, sum / (place - from + 1))]);
  });
  return out;
}
