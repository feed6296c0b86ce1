// The API of whoever serves these pages: documents by ETag, and an event whenever the cluster has changed.

const known = new Map();

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** A document; one that has not changed since is not sent again. */
export async function get(path, query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  const url = `/api/v1${path}${asked.size ? `?${asked}` : ""}`;
  const before = known.get(url);
  const answer = await fetch(url, { cache: "no-store", headers: before ? { "If-None-Match": before.etag } : {} });
  if (answer.status === 304) return before.document;
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
  const document = await answer.json();
  known.delete(url);
  known.set(url, { etag: answer.headers.get("ETag"), document });
  if (known.size > 40) known.delete(known.keys().next().value);
  return document;
}

export async function post(path, body) {
  const answer = await fetch(`/api/v1${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
  return answer.json();
}

export async function login(token) {
  const answer = await fetch("/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
}

export async function logout() {
  await fetch("/session", { method: "DELETE", headers: { "Content-Type": "application/json" } });
  known.clear();
}

/** Calls `changed` for each new version of the cluster, and `pulse` with whether events come. A hidden page asks for none. */
export function follow(changed, pulse) {
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource("/api/v1/events");
    source.addEventListener("cycle", () => {
      pulse(true);
      changed();
    });
    source.onopen = () => pulse(true);
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) {
        source = null;
        pulse(false);
        setTimeout(open, 15000);
      }
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else open();
  });
  open();
}
