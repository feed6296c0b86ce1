// A node or a pod from near: what it is, why it is where it is, and what would change that.

import { get, Refused } from "./api.js";
import { csvButton, h, listed, nodeLink, podLink, show } from "./dom.js";
import { blocks } from "./now.js";
import { became, bytes, cores, day, inWords, kindOf, length, money, number, percent, price, seconds, spoken } from "./words.js";

const dialog = document.getElementById("detail");
let back = "#/now";
let opened = "";

dialog.addEventListener("close", () => {
  if (location.hash === opened) history.replaceState(null, "", back); // else a link within led on
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

export function closeDetail() {
  if (dialog.open) dialog.close();
}

/** Opens a node or a pod beside the page; the address names it, so that it can be sent to somebody. */
export async function openDetail(kind, name, from) {
  back = from;
  opened = location.hash;
  const draw = { node, pod, namespace }[kind];
  if (!draw) {
    closeDetail();
    return;
  }
  try {
    show(dialog, ...(await draw(name, from)));
  } catch (error) {
    show(dialog, head(kind, name), ...(await gone(kind, name, error)));
  }
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

/** What is not there (any more): why that may be, and what was decided about it while it was. */
async function gone(kind, name, error) {
  if (!(error instanceof Refused) || error.status !== 404) return [h("p", { class: "note" }, error.message)];
  const why = kind === "node" ? "It was deleted, or the name is wrong." : "It ended or was deleted, or the name or namespace is wrong.";
  const past = await get("/decisions", { text: kind === "pod" ? name.split("/").at(-1) : name, limit: PAST }).catch(() => null);
  const lines = (past?.items ?? []).map((item) => h("li", {}, `${day(item.at)} ${seconds(item.at)} `, h("b", {}, became(item.kind, item.status)), ` ${item.subject}`, item.why && h("span", { class: "note" }, ` ${inWords(item.why)}`)));
  return [
    h("p", {}, h("b", {}, `No ${kind} has this name now. `), why),
    h("section", {}, h("h3", {}, "Decisions about it"), lines.length ? h("ol", { class: "lines" }, lines) : h("p", { class: "note" }, past ? "No decision about it is on record." : "This daemon keeps no history.")),
    lines.length === PAST && h("p", {}, h("a", { href: `#/decisions/all/${encodeURIComponent(name)}` }, "All decisions about it")),
  ];
}

/** So many past decisions are listed here; the page Decisions has them all. */
const PAST = 20;

function head(kind, name) {
  return h(
    "header",
    {},
    h("p", { class: "kind" }, kind),
    h("h2", { id: "detail-title" }, name),
    h("button", { type: "button", class: "quiet close", onclick: () => dialog.close(), "aria-label": "Close" }, "×"),
  );
}

const kindName = (kind) => (kind === "daemon" ? "DaemonSet" : kind);

const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));

/** Reasons that an approval decides, or has decided. */
const OF_WORDS = { PendingApproval: "approve or reject", Approved: "the approval", Rejected: "the rejection" };

function reason(name, message, meaning, title, subject = "") {
  return h(
    "section",
    { class: "reason", "data-kind": kindOf(name) },
    h("h3", {}, title),
    h("p", { class: "what" }, spoken(name), " ", h("code", {}, name)),
    meaning.says && h("p", {}, meaning.says),
    message && h("p", { class: "message" }, message),
    name in OF_WORDS && h("p", {}, h("a", { href: `#/approvals/about/${encodeURIComponent(subject)}` }, OF_WORDS[name])),
    meaning.remedy && h("p", { class: "remedy" }, h("b", {}, "What would change it "), remedies(meaning.remedy)),
  );
}

/** A remedy, as a list where it names one pod after the other. */
function remedies(text) {
  const parts = text.split(/(?<=\.) (?=[a-z0-9.-]+\/[a-z0-9.-]+ )/);
  return parts.length > 1 ? h("ul", { class: "remedies" }, parts.map((part) => h("li", {}, part))) : text;
}

const explained = (lines) =>
  h("details", {}, h("summary", {}, "Explanation as in htas explain"), h("ol", { class: "lines" }, lines.map((line) => h("li", { class: line.startsWith("  ") && "in" }, line.trim()))));

/** What all pods of a node request, as its bar and table have it. The cleaner's own figure may leave DaemonSets out. */
function asked(pods, what) {
  const sum = (some) => some.reduce((total, each) => total + each[what], 0);
  const daemons = sum(pods.filter((each) => each.kind === "daemon"));
  return `${percent(sum(pods))}${daemons ? `, of it DaemonSets ${percent(daemons)}` : ""}`;
}

async function node(name, from) {
  const found = await get(`/nodes/${encodeURIComponent(name)}`);
  const { node: line, why, message, blocks: pods } = found.item;
  return [
    head("node", name),
    h("div", { class: "wide-bar" }, blocks(pods)),
    facts([
      ["Price", line.price_per_hour ? [`${price(line.price_per_hour)} ${found.currency}/h · `, h("a", { href: "#/what-if" }, "What if")] : "unknown"],
      found.spent !== "" && ["Spent so far", Number(found.spent) ? [`${money(found.spent)} ${found.currency} · `, h("a", { href: `#/decisions/all/${encodeURIComponent(name)}` }, "history")] : "–"],
      ["Flavour", line.flavour ? h("a", { href: `#/now/find/${encodeURIComponent(line.flavour)}` }, line.flavour) : "–"],
      ["Group", line.group || "none"],
      line.zone !== "" && ["Zone", line.zone],
      ["CPU requested", asked(pods, "cpu")],
      ["Memory requested", asked(pods, "memory")],
      ["Age", length(line.age_s)],
      ["State", line.state],
      found.kubelet !== "" && ["Kubelet", found.kubelet],
    ]),
    reason(why, message, found.meaning, "Why it is kept", name),
    h(
      "section",
      {},
      h("div", { class: "tools" }, h("h3", {}, `Pods (${pods.length})`), csvButton(`pods-${name}`, ["pod", "kind", "workload", "cpu", "memory"], () => pods.map((each) => [each.pod, each.kind, each.owner, each.cpu, each.memory]))),
      pods.length
        ? listed(["Pod", "Kind", ["CPU"], ["Memory"]], pods.map((each) => [podLink(each.pod, from), kindName(each.kind), percent(each.cpu), percent(each.memory)]))
        : h("p", { class: "note" }, "No pod runs on this node."),
    ),
    explained(found.lines),
    h("details", {}, h("summary", {}, `Labels (${Object.keys(found.labels).length})`), h("ul", { class: "lines" }, Object.entries(found.labels).map(([key, value]) => h("li", {}, `${key}=${value}`)))),
    h("p", { class: "note" }, h("code", {}, `kubectl describe node ${name}`)),
  ];
}

/** So many of a namespace's pods are listed; the API has them all, a page at a time. */
const LISTED = 200;

async function namespace(name, from) {
  const found = await get("/pods", { namespace: name, limit: LISTED });
  const place = (each) => (each.node ? nodeLink(each.node, from) : `pending: ${spoken(each.reason || "no node yet")}`);
  const rows = found.items.map((each) => [podLink(each.pod, from), place(each), cores(each.cpu_m), bytes(each.memory_bytes)]);
  return [
    head("namespace", name),
    facts([["Pods now", number(found.total)], ["Cost", h("a", { href: "#/money/namespace" }, "by namespace")]]),
    h("section", {}, h("h3", {}, "Pods"), rows.length ? listed(["Pod", "Node", ["CPU"], ["Memory"]], rows) : h("p", { class: "note" }, "This namespace has no pods now.")),
    found.total > rows.length && h("p", { class: "note" }, `${number(found.total - rows.length)} more: /api/v1/pods?namespace=${name}&offset=${rows.length}`),
  ];
}

async function pod(name, from) {
  const [namespace, short] = name.split("/");
  const found = await get(`/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(short)}`);
  const item = found.item;
  return [
    head("pod", name),
    facts([
      ["Runs on", item.node ? nodeLink(item.node, from) : "no node yet: pending"],
      ["Cost", item.node ? `${price(found.price_per_hour)} ${found.currency}/h` : "–"],
      ["Kind", kindName(item.kind)],
      ["Workload", item.owner],
      ["Requests", `${cores(item.cpu_m)}, ${bytes(item.memory_bytes)}`],
      ["Priority", String(item.priority)],
    ]),
    item.reason && reason(item.reason, "", found.meaning, "Why it is pending"),
    h("section", {}, h("h3", {}, "Explanation"), h("ol", { class: "lines" }, found.lines.map((line) => h("li", { class: line.startsWith("  ") && "in" }, line.trim())))),
    found.refusals.length > 0 &&
      h(
        "section",
        {},
        h("h3", {}, "Flavours"),
        listed(
          ["Flavour", "Group", [`Price, ${found.currency}/h`], "Does the pod fit?"],
          found.refusals.map((each) => [each.flavour, each.group, price(each.price_per_hour), each.why ? `no: ${each.why}` : "yes"]),
          "list whole",
        ),
      ),
  ];
}
