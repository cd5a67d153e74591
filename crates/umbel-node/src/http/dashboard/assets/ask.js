// Ask: who holds a key? Answered from this host's memory; then, if wanted, confirmed by the hosts.

import { field, h, newId, replace, text } from "./dom.js";
import { base64, get, part } from "./api.js";
import { milliseconds, plural, seconds } from "./format.js";
import { standing } from "./host_map.js";
import { store } from "./store.js";

/** What was asked last: it stays when another view is shown. */
const last = { set: "", key: "" };

export function ask(root, name) {
  const listId = newId();
  const list = h("datalist", { id: listId });
  const set = h("input", { name: "set", required: true, list: listId, value: name || last.set, autocapitalize: "none", spellcheck: "false", placeholder: "images" });
  const key = h("input", { name: "key", required: true, value: last.key, autocapitalize: "none", spellcheck: "false", placeholder: "cat.png" });
  const button = h("button", { class: "primary", type: "submit" }, "Who holds it?");
  const answer = h("section", { "aria-live": "polite" });
  root.append(
    h("h1", null, "Ask"),
    h("p", { class: "lead" }, "Which hosts hold a key? This host answers from its own memory, without asking any of them."),
    h("form", { class: "card ask", onsubmit: (event) => { event.preventDefault(); question(); } }, list, field("Set", set), field("Key", key), button),
    answer);

  async function question() {
    [last.set, last.key] = [set.value, key.value];
    button.disabled = true;
    const asked = { set: set.value, key: key.value };
    const path = (what) => `/v1/sets/${part(asked.set)}/${what}/${base64(asked.key)}?encoding=base64`;
    const found = await get(path("who"));
    button.disabled = false;
    if (!found.ok) return replace(answer, h("p", { class: "card problem" }, found.problem));
    const result = show(asked, found, path);
    replace(answer, result);
  }

  function show(asked, found, path) {
    const { hosts, set_known: known } = found.data;
    const cards = new Map(hosts.map((host) => [host, card(host)]));
    const verdict = h("p", { class: "muted" });
    const confirm = h("button", {
      onclick: async () => {
        confirm.disabled = true;
        text(verdict, "Asking the hosts…");
        const located = await get(path("locate"));
        confirm.disabled = false;
        if (!located.ok) return text(verdict, located.problem);
        const holders = located.data.hosts;
        for (const [host, one] of cards) one.confirm(holders.includes(host), located.data.complete);
        const beyond = holders.filter((host) => !cards.has(host));
        const words = holders.length === 0 ? "No host confirms that it holds the key" : `${plural(holders.length, "host")} confirmed: ${holders.join(", ")}`;
        text(verdict, `${words}${beyond.length > 0 ? ` (${beyond.join(", ")} came in meanwhile)` : ""}, in ${milliseconds(located.took)}. ${rest(located.data)}`);
      },
    }, "Confirm with the hosts");
    const time = found.hostTook === null ? `round trip ${milliseconds(found.took)}` : `${milliseconds(found.hostTook)} at the host, ${milliseconds(found.took)} with the round trip from this browser`;
    const title = hosts.length === 0 ? "Nobody, as far as this host knows" : `${plural(hosts.length, "host")} may hold it`;
    if (hosts.length > 0) freshnessOf(asked.set, cards);
    return h("div", { class: "card answer" },
      h("h2", null, title),
      h("p", { class: "muted" }, `${asked.set} / ${asked.key} · ${time}`),
      known ? null : h("p", { class: "notice warn" }, `Nobody is known to have a set "${asked.set}": is the name right?`),
      h("p", null, rest(found.data)),
      h("div", { class: "candidates" }, [...cards.values()].map((one) => one.element)),
      hosts.length > 0 ? h("div", { class: "row" }, confirm, verdict) : null);
  }

  function update() {
    const names = [...store.sets.keys()].sort();
    if (list.dataset.names === String(names.length) + names[0]) return;
    list.dataset.names = String(names.length) + names[0];
    replace(list, names.slice(0, 200).map((one) => h("option", { value: one })));
    if (!set.value && names.length > 0) set.value = names[0];
  }
  key.focus({ preventScroll: true });
  return { title: "Ask", update };
}

/** How much of the cluster an answer covers. */
function rest(data) {
  if (data.complete) return "The answer is complete: all hosts of the cluster are covered.";
  const missing = (data.missing_hosts ?? []).map((one) => `${one.host} (${one.reason})`).join(", ");
  return `The answer is not complete: ${data.hosts_known} of ${data.hosts_expected} hosts are covered${missing ? `; missing: ${missing}` : ""}.`;
}

function card(name) {
  const host = store.hosts.get(name);
  const { word, tone } = host ? standing(host) : { word: "not known any more", tone: "grey" };
  const fresh = h("span", { class: "muted" }, host?.state === "self" ? "its own catalogue: exact" : "");
  const verdict = h("span", { class: "tag" });
  verdict.hidden = true;
  const element = h("div", { class: `candidate ${tone}`, "data-candidate": name }, h("b", null, name), h("span", { class: `tag ${tone}` }, word), fresh, verdict);
  return {
    element, fresh, isSelf: host?.state === "self",
    confirm(holds, complete) {
      verdict.hidden = false;
      verdict.className = `tag ${holds ? "ok" : "bad"}`;
      text(verdict, holds ? "✓ holds it" : complete ? "✗ does not hold it" : "did not confirm");
    },
  };
}

/** How fresh the replica is that named each candidate. */
async function freshnessOf(set, cards) {
  const detail = await get(`/dashboard/sets/${part(set)}`);
  if (!detail.ok) return;
  for (const replica of detail.data.replicas) {
    const one = cards.get(replica.host);
    if (!one || one.isSelf) continue;
    const age = `replica updated ${seconds(replica.age_seconds)} ago`;
    text(one.fresh, replica.current ? `${age}, no newer one is known` : `${age}, ${plural(replica.lag_epochs, "update")} behind`);
  }
}
