// The hosts as an umbel: this host at the foot, every other one at the end of a stalk. Signs and
// words say how each is; colour only repeats it.

import { h, s, text } from "./dom.js";
import { count, plural, seconds } from "./format.js";

/** What a host's row means: a word, a tone, a sign. */
export function standing(host) {
  switch (host.state) {
    case "self": return { word: "this host", tone: "self", sign: "full" };
    case "gone": return { word: "gone", tone: "grey", sign: "cross" };
    case "unreachable": case "down": return { word: "not reached", tone: "grey", sign: "cross" };
    case "suspected": return { word: "disappeared", tone: "warn", sign: "dashed" };
    case "away": return { word: "restarting", tone: "warn", sign: "dashed" };
    case "refused": return { word: "refused", tone: "bad", sign: "square" };
    default:
      if (host.reason) return { word: host.reason, tone: "warn", sign: "half" };
      if (host.behind > 0) return { word: "catching up", tone: "ok", sign: "half" };
      return { word: "up to date", tone: "ok", sign: "full" };
  }
}

/** A host in one sentence. */
export function sentence(host) {
  const { word } = standing(host);
  if (host.state === "self") return `${host.name}: this host, ${plural(host.sets, "own set")}, ${plural(host.items, "key")}`;
  const parts = [`${host.name}: ${word}`];
  if (host.reason && host.reason !== word) parts.push(host.reason);
  if (host.sets > 0) parts.push(`${plural(host.sets, "set")} here with ${plural(host.items, "key")}`);
  if (host.behind > 0) parts.push(`${plural(host.behind, "replica")} behind${host.lag_epochs > 0 ? ` by up to ${plural(host.lag_epochs, "update")} and ${seconds(host.lag)}` : ""}`);
  else if (host.fresh !== null && host.sets > 0) parts.push(host.fresh === 0 ? "last update less than 10 s ago" : `last update about ${seconds(host.fresh)} ago`);
  return parts.join(", ");
}

const WIDTH = 640;
const FOOT = { x: WIDTH / 2, y: 296 };

/** Places at the ends of stalks: arcs from the inside out, each as full as it looks well. */
function places(n) {
  const arcs = [];
  let left = n;
  const many = n > 40;
  for (let arc = 0; left > 0; arc += 1) {
    const room = n <= 14 ? 14 : (many ? 16 : 12) + arc * 8;
    arcs.push(Math.min(left, room));
    left -= room;
  }
  const all = [];
  arcs.forEach((held, arc) => {
    const outer = 236;
    const inner = arcs.length === 1 ? outer : 110;
    const radius = arcs.length === 1 ? outer : inner + ((outer - inner) * arc) / (arcs.length - 1);
    const spread = Math.PI * (held === 1 ? 0 : Math.min(0.86, 0.2 + held * 0.12));
    for (let place = 0; place < held; place += 1) {
      const turn = held === 1 ? 0 : (place / (held - 1) - 0.5) * spread;
      all.push({ x: FOOT.x + Math.sin(turn) * radius * 1.18, y: FOOT.y - Math.cos(turn) * radius, turn });
    }
  });
  return all;
}

function sign(kind, radius) {
  const r = radius;
  switch (kind) {
    case "cross": return [s("circle", { r, class: "hollow" }), s("path", { d: `M${-r * 0.5},${-r * 0.5}L${r * 0.5},${r * 0.5}M${r * 0.5},${-r * 0.5}L${-r * 0.5},${r * 0.5}`, class: "stroke" })];
    case "dashed": return [s("circle", { r, class: "hollow dashes" }), s("circle", { r: r * 0.3, class: "solid" })];
    case "square": return [s("rect", { x: -r, y: -r, width: 2 * r, height: 2 * r, class: "hollow" }), s("path", { d: `M${-r * 0.5},0H${r * 0.5}`, class: "stroke" })];
    case "half": return [s("circle", { r, class: "hollow" }), s("path", { d: `M0,${-r}A${r},${r} 0 0 1 0,${r}Z`, class: "solid" })];
    default: return [s("circle", { r, class: "solid" })];
  }
}

export function hostMap() {
  const canvas = s("svg", { class: "map", viewBox: `0 0 ${WIDTH} 330`, role: "group", "aria-label": "Hosts of the cluster" });
  const said = h("p", { class: "map-said", "aria-live": "polite" });
  const legend = h("ul", { class: "legend map-legend" },
    [["full", "ok", "up to date"], ["half", "ok", "catching up"], ["dashed", "warn", "disappeared, still answered for"], ["cross", "grey", "gone"], ["square", "bad", "refused"]]
      .map(([kind, tone, word]) => h("li", null, s("svg", { class: "swatch", width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" }, s("g", { class: `host ${tone}` }, ...sign(kind, 5))), word)));
  const element = h("div", { class: "map-box" }, canvas, said, legend);
  let shown = "";
  let pointed = null;

  const point = (name) => {
    pointed = name;
    speak();
  };
  let byName = new Map();
  function speak() {
    const host = byName.get(pointed);
    text(said, host ? sentence(host) : "Point at a host, or reach it with the tab key.");
  }

  function update(hosts) {
    byName = new Map(hosts.map((host) => [host.name, host]));
    const others = hosts.filter((host) => host.state !== "self");
    const me = hosts.find((host) => host.state === "self");
    const key = JSON.stringify(hosts.map((host) => [host.name, host.state, host.reason, host.behind > 0]));
    speak();
    if (key === shown) return;
    shown = key;
    const held = document.activeElement?.dataset?.host;
    const at = places(others.length);
    const radius = others.length > 60 ? 7 : others.length > 24 ? 9 : others.length > 10 ? 12 : 15;
    const stalks = s("g", { class: "stalks" });
    const heads = s("g");
    others.forEach((host, place) => {
      const { x, y, turn } = at[place];
      const { tone, sign: kind } = standing(host);
      const bend = { x: FOOT.x + (x - FOOT.x) * 0.28, y: FOOT.y - (FOOT.y - y) * 0.62 };
      stalks.append(s("path", { class: `stalk ${tone} ${kind}`, d: `M${FOOT.x},${FOOT.y}Q${bend.x},${bend.y} ${x},${y}` }));
      const named = others.length <= 14;
      heads.append(node(host, x, y, radius, tone, kind, named ? { dy: others.length > 6 && place % 2 ? -radius - 22 : -radius - 8, turn } : null));
    });
    if (me) heads.append(node(me, FOOT.x, FOOT.y, 18, "self", "full", { dy: 34, turn: 0 }));
    canvas.replaceChildren(stalks, heads);
    if (held) canvas.querySelector(`[data-host="${CSS.escape(held)}"]`)?.focus();
  }

  function node(host, x, y, radius, tone, kind, label) {
    const short = host.name.length > 16 ? `${host.name.slice(0, 15)}…` : host.name;
    return s("g", {
      class: `host ${tone}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, tabindex: 0, role: "img", "aria-label": sentence(host),
      "data-host": host.name, "data-state": host.state,
      onpointerenter: () => point(host.name), onfocus: () => point(host.name), onpointerleave: () => point(null),
    },
      s("circle", { r: radius + 6, class: "reach" }), ...sign(kind, radius),
      label ? s("text", { y: label.dy, "text-anchor": label.turn < -0.9 ? "start" : label.turn > 0.9 ? "end" : "middle" }, short) : null);
  }
  return { element, update };
}

/** How many hosts are in which state, in words. */
export function summary(hosts) {
  const tally = new Map();
  for (const host of hosts) {
    if (host.state === "self") continue;
    const { sign } = standing(host);
    const word = { full: "up to date", half: "catching up", dashed: "disappeared", cross: "gone", square: "refused" }[sign];
    tally.set(word, (tally.get(word) ?? 0) + 1);
  }
  return [...tally].map(([word, n]) => `${count(n)} ${word}`).join(", ") || "no other host";
}
