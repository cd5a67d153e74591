// One set: its shape, how full it is, its history, its policy, and what to change.

import { field, h, replace, text, tile } from "./dom.js";
import { get, part, patch, post } from "./api.js";
import { bar } from "./chart.js";
import { bytes, count, number, percent, plural, seconds } from "./format.js";
import { freshnessCharts } from "./freshness.js";
import { may, mergeHistory, store } from "./store.js";

/** Details are read again when the set's row has changed, at most this often. */
const AT_MOST_EVERY = 3000;

export function setPage(root, name) {
  const findings = h("div", { class: "notices" });
  const tiles = { items: tile("Keys here"), everywhere: tile("Keys everywhere"), rate: tile("False rate"), miss: tile("Missed now") };
  const shape = h("dl", { class: "facts" });
  const fills = h("div", { class: "fills" });
  const replicas = h("tbody");
  const charts = freshnessCharts();
  const form = policyForm(name, () => load());
  const problem = h("p", { class: "problem" });
  root.append(
    h("p", { class: "crumbs" }, h("a", { href: "#/overview" }, "Overview"), " / set"),
    h("div", { class: "row head" }, h("h1", null, name), h("span", { class: "row" }, h("a", { href: `#/ask/${encodeURIComponent(name)}` }, "Ask for a key"), h("a", { href: `#/traffic/${encodeURIComponent(name)}` }, "Traffic"))),
    problem, findings,
    h("div", { class: "tiles" }, ...Object.values(tiles).map((one) => one.element)),
    h("div", { class: "columns" },
      h("section", { class: "card" }, h("h2", null, "Shape"), shape, h("h2", null, "Fill"), fills),
      h("section", { class: "card" }, h("h2", null, "Policy and plan"), form.element)),
    h("h2", { class: "above" }, "History"), charts.element,
    h("section", { class: "card" }, h("h2", null, "Replicas here"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Replicas" }, h("table", { class: "replicas" },
        h("thead", null, h("tr", null, ["Host", "Keys", "Update", "Behind", "Last update"].map((label, place) => h("th", { scope: "col", class: place ? "number" : "" }, label)))), replicas))));
  let detail = null;
  let gone = false;
  let loaded = { row: null, at: 0, busy: false };

  async function load() {
    loaded = { row: store.sets.get(name), at: performance.now(), busy: true };
    const answer = await get(`/dashboard/sets/${part(name)}`);
    loaded.busy = false;
    if (gone) return;
    if (!answer.ok) return text(problem, answer.problem);
    text(problem, "");
    const first = detail === null;
    detail = answer.data;
    if (first) mergeHistory(name, detail.history);
    show();
  }

  function show() {
    const { info } = detail;
    replace(findings, detail.findings.map((one) => h("div", { class: "notice warn" }, h("b", null, `Not as promised: ${one.what}. `), one.change)));
    if (detail.findings.length === 0) replace(findings, h("p", { class: "notice ok" }, "✓ This set keeps its promises, as far as this host can tell."));
    const facts = [
      ["Home", info.own ? "this host has keys of its own in it" : "this host holds replicas only"],
      ["Bits", info.bits === null ? "–" : `${count(info.bits)} (${bytes(info.bits / 8)})`],
      ["Rung", info.rung === null ? "–" : `2^${info.rung}${info.published_rung !== info.rung && info.published_rung !== null ? `, published as 2^${info.published_rung}` : ""}`],
      ["Hashes", info.hashes === null ? "–" : `${info.hashes} positions per key`],
      ["Takes", info.takes === null ? "–" : `${plural(info.takes, "key")} before a longer filter is built`],
      ["Expected hosts", info.expected_hosts ?? "–"],
      ["Memory", `${bytes((detail.own_bytes ?? 0))} own filter, ${bytes(info.replica_bytes)} replicas`],
      ["Lifetime of keys", info.lifetime === null ? "they stay until removed" : seconds(info.lifetime)],
      ["Confirmed by", info.confirm === null || info.confirm === "none" ? "the catalogue" : info.confirm],
      ["Rebuilt", plural(info.rebuilds, "time")],
      ["Changed", detail.keys_added === null ? "–" : `${count(detail.keys_added)} added, ${count(detail.keys_removed)} removed since the start`],
      ["Published", info.own ? `${plural(info.updates_sent, "update")}, ${bytes(info.bytes_sent)}` : "–"],
    ];
    replace(shape, facts.map(([label, value]) => [h("dt", null, label), h("dd", null, String(value))]));
    const rows = detail.fills.map((fill, place) => fillRow(detail.fills.length > 1 ? `Component ${place + 1}` : "Ones in the filter", fill, `${percent(fill)} of its bits`));
    if (info.full !== null) rows.unshift(fillRow("Keys, of those it takes", info.full, `${percent(info.full)}: ${count(info.items)} of ${count(info.takes)}`));
    replace(fills, rows.length > 0 ? rows : h("p", { class: "muted" }, "This host has no filter of its own for this set."));
    replace(replicas, detail.replicas.slice(0, 100).map((one) => h("tr", { "data-replica": one.host },
      h("th", { scope: "row" }, one.host), h("td", { class: "number" }, count(one.items)), h("td", { class: "number" }, one.epoch === null ? "none yet" : count(one.epoch)),
      h("td", { class: "number" }, one.current ? "no" : `${plural(one.lag_epochs, "update")}, ${seconds(one.lag_seconds)}`), h("td", { class: "number" }, `${seconds(one.age_seconds)} ago`))));
    if (detail.replicas.length === 0) replace(replicas, h("tr", null, h("td", { colspan: 5, class: "muted" }, "No other host is known to have this set.")));
    form.show(info);
  }

  load();

  function update() {
    const row = store.sets.get(name);
    if (row !== loaded.row && !loaded.busy && performance.now() - loaded.at > AT_MOST_EVERY) load();
    if (!row || !detail) return;
    const points = store.points.get(name) ?? [];
    const { info } = detail;
    tiles.items.set(row.own ? count(row.items) : "–", info.full === null ? "" : `${percent(info.full)} of what the filter takes`);
    tiles.everywhere.set(count(row.items_everywhere), `${plural(row.replicas, "replica")} here`);
    tiles.rate.set(row.estimated === null ? percent(info.measured_false_positive) : percent(row.estimated), row.target === null ? "" : `of one replica; ${percent(row.target)} promised per lookup`);
    tiles.miss.set(percent(row.miss), row.miss_target === null ? "" : `target ${percent(row.miss_target)}`, row.miss_target !== null && row.miss > row.miss_target ? "warn" : "");
    charts.update(points, { missTarget: detail.miss_target, ghostTarget: detail.ghost_target, target: row.target, hosts: info.expected_hosts });
  }
  return {
    title: name, update,
    unmount() {
      gone = true;
    },
  };
}

function fillRow(label, share, note) {
  return h("div", { class: "fill-row" }, h("span", null, label), bar(share, share > 1 ? "warn" : ""), h("span", { class: "muted" }, note));
}

function policyForm(name, onChange) {
  const inputs = {
    policy: h("input", { name: "policy", spellcheck: "false", autocapitalize: "none" }),
    false_positive: h("input", { name: "false_positive", inputmode: "decimal" }),
    expected_hosts: h("input", { name: "expected_hosts", inputmode: "numeric" }),
  };
  const said = h("p", { class: "problem", role: "status" });
  const save = h("button", { class: "primary", type: "submit" }, "Change");
  const publish = h("button", { type: "button", onclick: async () => told(await post(`/v1/sets/${part(name)}/publish`), "An update is on its way.") }, "Publish now");
  let before = {};
  const told = (answer, words) => {
    said.className = answer.ok ? "good" : "problem";
    text(said, answer.ok ? words : answer.problem);
    if (answer.ok) onChange();
  };
  const note = h("p", { class: "hint" });
  const element = h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      const wanted = {};
      for (const [key, input] of Object.entries(inputs)) {
        const value = input.value.trim();
        if (value === before[key] || value === "") continue;
        wanted[key] = key === "policy" ? value : Number(value);
        if (Number.isNaN(wanted[key])) return told({ ok: false, problem: `${key.replace("_", " ")} is a number` });
      }
      if (Object.keys(wanted).length === 0) return told({ ok: false, problem: "Nothing was changed." });
      save.disabled = true;
      const answer = await patch(`/v1/sets/${part(name)}`, wanted);
      save.disabled = !may("admin");
      if (answer.ok) remember(answer.data, true);
      told(answer, "Changed. It holds from now on, on this host.");
    },
  },
    field("Policy", inputs.policy, "miss:0.01,ghost=0.05,longest=1s · dirty:0.1 · interval:60s · budget:10000 · manual; with shortest=, longest=, clears="),
    field("False positive rate per lookup", inputs.false_positive), field("Expected hosts", inputs.expected_hosts),
    h("div", { class: "row" }, save, publish), said, note);

  function remember(info, overwrite) {
    const now = { policy: info.policy ?? "", false_positive: info.false_positive === null ? "" : number(info.false_positive), expected_hosts: String(info.expected_hosts ?? "") };
    for (const [key, input] of Object.entries(inputs)) {
      // What somebody is typing stays.
      if (overwrite || input.value === (before[key] ?? "")) input.value = now[key];
    }
    before = now;
  }
  return {
    element,
    show(info) {
      remember(info, false);
      for (const input of Object.values(inputs)) input.disabled = !info.own || !may("admin");
      save.disabled = !info.own || !may("admin");
      publish.disabled = !info.own || !may("write");
      text(note, !info.own ? "Only the hosts that have keys in this set can change its policy: open their dashboards."
        : !may("admin") ? "Changing this needs the permission \"admin\"." : "Changes concern this host's part of the set. Other hosts have plans of their own.");
    },
  };
}
