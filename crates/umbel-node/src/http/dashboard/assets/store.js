// What is known of the cluster: fed by one stream of events, read by the views.

const KEPT_POINTS = 600;
const KEPT_EVENTS = 50;

/** State of the page. Views read it and are told, at most once a frame, that it changed. */
export const store = {
  viewer: null,
  connected: false,
  status: null,
  sets: new Map(),
  hosts: new Map(),
  setsTotal: 0,
  hostsTotal: 0,
  /** Points of each set, oldest first. */
  points: new Map(),
  columns: [],
  events: [],
  /** The host's clock, and when this page heard it. */
  clock: { host: 0, page: 0 },
};

const listeners = new Set();
let scheduled = false;

/** Calls a function after changes, at most once a frame; returns how to stop that. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function changed() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    for (const listener of listeners) listener();
  });
}

const may = (permission) => store.viewer?.permissions.includes(permission) ?? false;
export { may };

/** The host's clock now. */
export const hostNow = () => store.clock.host + (performance.now() - store.clock.page) / 1000;

function row(columns, values) {
  const made = {};
  columns.forEach((column, place) => (made[column] = values[place] ?? null));
  return made;
}

let setColumns = [];
let hostColumns = [];

function take(changes) {
  store.status = changes.status;
  for (const values of changes.sets) store.sets.set(values[0], row(setColumns, values));
  for (const values of changes.hosts) store.hosts.set(values[0], row(hostColumns, values));
  for (const name of changes.gone_sets) store.sets.delete(name);
  for (const name of changes.gone_hosts) store.hosts.delete(name);
  store.setsTotal = changes.sets_total;
  store.hostsTotal = changes.hosts_total;
}

function heard(t) {
  store.clock = { host: t, page: performance.now() };
}

const handlers = {
  snapshot(data) {
    setColumns = data.set_columns;
    hostColumns = data.host_columns;
    store.columns = data.point_columns;
    store.sets.clear();
    store.hosts.clear();
    heard(data.t);
    take(data);
  },
  tick(data) {
    heard(data.t);
    for (const [set, point] of Object.entries(data.points)) addPoint(set, row(store.columns, point));
    if (data.changes) take(data.changes);
  },
  happened(data) {
    store.events.unshift({ t: data.t, event: data.event, ...data.facts });
    store.events.length = Math.min(store.events.length, KEPT_EVENTS);
  },
};

function addPoint(set, point) {
  let points = store.points.get(set);
  if (!points) store.points.set(set, (points = []));
  const last = points.at(-1);
  if (last && last.t >= point.t) return;
  points.push(point);
  if (points.length > KEPT_POINTS) points.splice(0, points.length - KEPT_POINTS);
}

/** Puts a set's history before the points that came since. */
export function mergeHistory(set, series) {
  const older = series.points.map((point) => row(series.columns, point));
  const last = older.at(-1)?.t ?? -Infinity;
  const newer = (store.points.get(set) ?? []).filter((point) => point.t > last);
  store.points.set(set, older.concat(newer).slice(-KEPT_POINTS));
  changed();
}

let source = null;

/** Opens the stream; the browser opens it again by itself when it breaks. */
export function connect() {
  source?.close();
  source = new EventSource("/dashboard/feed");
  source.addEventListener("open", () => {
    store.connected = true;
    changed();
  });
  source.addEventListener("error", () => {
    store.connected = false;
    changed();
    // A stream that was refused is not tried again: the session may be over.
    if (source?.readyState === EventSource.CLOSED) window.dispatchEvent(new Event("umbel:refused"));
  });
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => {
      handle(JSON.parse(event.data));
      store.connected = true;
      changed();
    });
  }
}

/** Closes the stream and forgets everything. */
export function disconnect() {
  source?.close();
  source = null;
  store.connected = false;
  store.status = null;
  for (const map of [store.sets, store.hosts, store.points]) map.clear();
  store.events = [];
}
