// The frame of the page: who looks, which view is shown, what the head says.

import { h, replace, text } from "./dom.js";
import { get, post } from "./api.js";
import { changed, connect, disconnect, store, subscribe } from "./store.js";
import { login } from "./login.js";
import { overview } from "./overview.js";
import { freshness } from "./freshness.js";
import { traffic } from "./traffic.js";
import { ask } from "./ask.js";
import { setPage } from "./set.js";
import { plan } from "./plan.js";

const VIEWS = { overview, freshness, traffic, ask, plan, set: setPage };
const TABS = [["overview", "Overview"], ["freshness", "Freshness"], ["traffic", "Traffic"], ["ask", "Ask"], ["plan", "Plan"]];

const top = document.getElementById("top");
const main = document.getElementById("main");
let current = null;
let head = null;

function route() {
  const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const known = Object.hasOwn(VIEWS, view) ? view : "overview";
  let name = rest.join("/");
  try {
    name = decodeURIComponent(name);
  } catch {
    name = "";
  }
  return { view: known, name };
}

function show() {
  const { view, name } = route();
  current?.unmount?.();
  main.replaceChildren();
  current = VIEWS[view](main, name);
  document.title = `${current.title} · umbel`;
  for (const tab of top.querySelectorAll("[data-tab]")) {
    const here = tab.dataset.tab === view || (view === "set" && tab.dataset.tab === "overview");
    if (here) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  if (store.status) current.update?.();
}

function frame() {
  const name = h("b");
  const cluster = h("span", { class: "muted" });
  const pill = h("span", { class: "pill", role: "status" });
  const user = store.viewer.user;
  const out = user ? h("button", { class: "quiet", onclick: leave }, `Log out ${user}`) : null;
  head = { name, cluster, pill };
  replace(top,
    h("div", { class: "brand" },
      h("a", { href: "#/overview", class: "logo", "aria-label": "umbel, overview" }, h("img", { src: "/dashboard/assets/icon.svg", alt: "", width: 26, height: 26 }), "umbel"),
      h("span", { class: "where" }, name, " ", cluster), pill, out),
    h("nav", { "aria-label": "Views" }, TABS.map(([tab, label]) => h("a", { href: `#/${tab}`, "data-tab": tab }, label))));
}

function updateHead() {
  const status = store.status;
  if (!head || !status) return;
  text(head.name, status.name);
  text(head.cluster, `in ${status.cluster}`);
  const [words, tone] = !store.connected ? ["host does not answer, trying again", "bad"]
    : status.catalogue_failure ? ["changes are refused", "bad"]
      : !status.complete ? [`${status.hosts_known} of ${status.hosts_expected} hosts known`, "warn"]
        : ["answers are complete", "ok"];
  text(head.pill, words);
  head.pill.className = `pill ${tone}`;
}

async function leave() {
  await post("/dashboard/logout");
  await begin();
}

function needLogin() {
  disconnect();
  current?.unmount?.();
  current = null;
  head = null;
  top.replaceChildren();
  document.title = "Log in · umbel";
  login(main, (viewer) => enter(viewer));
}

function enter(viewer) {
  store.viewer = viewer;
  if (!viewer.permissions.includes("read")) {
    disconnect();
    frame();
    return replace(main, h("p", { class: "card center" }, `User ${viewer.user} may not read: ask for the permission "read".`));
  }
  frame();
  connect();
  show();
  main.focus({ preventScroll: true });
}

async function begin() {
  const answer = await get("/dashboard/session");
  if (!answer.ok) return replace(main, h("p", { class: "card center problem" }, answer.problem));
  if (answer.data.login_needed) return needLogin();
  enter(answer.data);
}

let asking = false;
/** The stream was refused: whoever looks may have been removed, or the host is away. */
async function refused() {
  if (asking) return;
  asking = true;
  const answer = await get("/dashboard/session");
  asking = false;
  if (answer.ok && answer.data.login_needed) return needLogin();
  setTimeout(() => store.viewer && connect(), 3000);
}

window.addEventListener("hashchange", () => store.viewer && current && show());
window.addEventListener("umbel:logged-out", () => store.viewer && needLogin());
window.addEventListener("umbel:refused", refused);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && changed());
subscribe(() => {
  if (document.visibilityState !== "visible") return;
  updateHead();
  if (store.status) current?.update?.();
});
begin();
