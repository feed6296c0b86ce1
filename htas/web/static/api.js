// The API of whoever serves these pages: documents by ETag, and an event whenever the cluster has changed.

const known = new Map();
/** A server that hangs counts as away; the longest answers, bills of a month, take some seconds. */
const PATIENCE_MS = 30000;

/** `again` is after how many seconds the server wants to be asked again; null: it did not say. */
export class Refused extends Error {
  constructor(status, text, again = null) {
    super(text);
    this.status = status;
    this.again = again;
  }
}

async function refused(answer) {
  const after = Number(answer.headers.get("Retry-After") ?? NaN);
  return new Refused(answer.status, (await answer.text()).trim(), Number.isFinite(after) ? after : null);
}

/** A document; one that has not changed since is not sent again. */
export async function get(path, query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  const url = `/api/v1${path}${asked.size ? `?${asked}` : ""}`;
  const before = known.get(url);
  const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS), headers: before ? { "If-None-Match": before.etag } : {} });
  if (answer.status === 304) return before.document;
  if (!answer.ok) throw await refused(answer);
  const document = await answer.json();
  known.delete(url);
  known.set(url, { etag: answer.headers.get("ETag"), document });
  if (known.size > 40) known.delete(known.keys().next().value);
  return document;
}

export async function post(path, body) {
  const answer = await fetch(`/api/v1${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw await refused(answer);
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

const ASK_AGAIN_MS = 15000;
/** A stream that ends is taken up again within a second; one that is not has no server. */
const REOPENED_MS = 1500;
/** The server says something on each stream every ten seconds: after so long without a word it hangs. */
const SILENT_MS = 25000;

/**
 * Calls `changed` for each new version of the cluster, and `pulse` with whether events come; returns what ends that.
 * A hidden page asks for none. While no stream comes about (too many are open, or a proxy cuts it), it asks by itself.
 */
export function follow(changed, pulse) {
  let source = null;
  let ended = false;
  let heard = 0;
  const open = () => {
    if (ended || source || document.hidden) return;
    source = new EventSource("/api/v1/events");
    const speaks = () => {
      heard = performance.now();
      pulse(true);
    };
    speaks();
    source.addEventListener("cycle", () => {
      speaks();
      changed();
    });
    source.addEventListener("beat", speaks);
    source.onopen = speaks;
    source.onerror = () => {
      pulse(false);
      if (source?.readyState === EventSource.CLOSED) source = null;
      setTimeout(() => !ended && !document.hidden && source?.readyState !== EventSource.OPEN && changed(), REOPENED_MS);
    };
  };
  const turned = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else {
      changed();
      open();
    }
  };
  const timer = setInterval(() => {
    const isSilent = performance.now() - heard > SILENT_MS;
    if (document.hidden || (source?.readyState === EventSource.OPEN && !isSilent)) return;
    if (isSilent) {
      source?.close();
      source = null;
    }
    changed();
    open();
  }, ASK_AGAIN_MS);
  document.addEventListener("visibilitychange", turned);
  open();
  return () => {
    ended = true;
    clearInterval(timer);
    document.removeEventListener("visibilitychange", turned);
    source?.close();
    source = null;
  };
}
