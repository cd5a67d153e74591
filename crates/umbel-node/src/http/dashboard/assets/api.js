// Requests to this host. The header tells the host that its own page asks; see docs/security.md.

const HEADER = { "x-umbel-dashboard": "1" };

/** What came of a request: data, or a problem in words; and how long it took. */
async function send(method, path, body) {
  const begun = performance.now();
  const headers = body === undefined ? HEADER : { ...HEADER, "content-type": "application/json" };
  let response;
  try {
    response = await fetch(path, {
      method, headers, credentials: "same-origin", redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    return { ok: false, status: 0, problem: "This host does not answer. Is it running?" };
  }
  const data = await response.json().catch(() => null);
  const took = performance.now() - begun;
  const timing = /dur=([0-9.]+)/.exec(response.headers.get("server-timing") ?? "");
  const hostTook = timing ? Number(timing[1]) : null;
  if (response.ok) return { ok: true, status: response.status, data, took, hostTook };
  if (response.status === 401 && !path.startsWith("/dashboard/log")) {
    window.dispatchEvent(new Event("umbel:logged-out"));
  }
  const problem = data?.detail ?? `The host answered ${response.status}.`;
  return { ok: false, status: response.status, problem, took, hostTook };
}

export const get = (path) => send("GET", path);
export const post = (path, body) => send("POST", path, body ?? {});
export const patch = (path, body) => send("PATCH", path, body);

/** A name or key as part of a path. */
export const part = (name) => encodeURIComponent(name);

/** Any text as base64 of the URL's alphabet: keys such as ".." survive a URL this way. */
export function base64(key) {
  const bytes = new TextEncoder().encode(key);
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
