// To approve: proposals that would disrupt running pods and wait for approval.

import { get, post } from "./api.js";
import { figure, folded, h, nodeLink, podLink, show } from "./dom.js";
import { clock, counted, length, number, price } from "./words.js";

const NAMES = { drain: "Drain and delete", replace: "Replace", preempt: "Preempt for", rearrange: "Rearrange", suggest: "Move closer to users" };
const node = (name) => nodeLink(name, "#/approvals");
const pod = (name) => podLink(name, "#/approvals");
/** What a question is about: nodes, a pod, or the whole cluster, which has no page of its own. */
const subject = ({ kind, subject: name }) => (kind === "preempt" ? pod(name) : ["drain", "replace"].includes(kind) ? name.split(" ").map((each, i) => [i > 0 && ", ", node(each)]) : "");

/** The beginning that the names of the nodes in question share: by it they are found on the page Now. */
function alike(items) {
  const names = items.filter((item) => ["drain", "replace"].includes(item.kind)).flatMap((item) => item.subject.split(" "));
  let shared = names[0] ?? "";
  while (!names.every((name) => name.startsWith(shared))) shared = shared.slice(0, -1);
  return shared;
}

/** What happens to a pod: a later plan decides it where machines are launched first. */
function leaves(move) {
  if (!move) return "";
  const { method, target } = move;
  if (!method) return "leaves once the new machines are Ready";
  if (method === "evict") return ["evicted, restarts ", target ? ["on ", node(target)] : "where it fits"];
  return method === "replace" ? ["replaced by a copy on ", node(target)] : ["migrated to ", node(target), ` by ${method}`];
}

/** What an approval of an older proposal means. */
const unproposed = (item) => `not proposed since ${clock(item.proposed_last)}: the approval counts if HTAS proposes it again for the same pods`;

/** What was decided, and what follows. */
function outcome(items, verdict) {
  if (verdict !== "approve") return `${counted(items.length, "proposal")} rejected.`;
  const past = items.filter((item) => !item.is_proposed);
  const present = items.length - past.length;
  const parts = [present > 0 && `${counted(present, "proposal")} approved: HTAS carries them out in the next cycles.`, past.length > 0 && `${counted(past.length, "proposal")} approved, but ${past.length === 1 ? unproposed(past[0]) : "not proposed now: each approval counts if HTAS proposes it again for the same pods"}.`];
  return parts.filter(Boolean).join(" ");
}

/** `changed` draws whatever shows proposals: this page, and the line on every page. */
export function approvals(changed) {
  const said = h("p", { class: "said", role: "status" });
  const all = h("div", { class: "chips" });
  const title = h("h1", { tabindex: "-1" }, "To approve");
  const body = h("div", { class: "stack" });
  const root = h("div", { class: "page" }, h("div", { class: "tools" }, title, all), said, body);
  let now = 0;
  let wanted = "";
  let isSure = true;

  /** Buttons for all proposals; approving all asks twice, and covers only what is shown. */
  function everything(waiting) {
    if (waiting.length < 2) isSure = true;
    const turn = (sure, then) => async () => {
      isSure = sure;
      await page.draw();
      root.querySelector(`[data-word="${then}"]`)?.focus();
    };
    const ask = (name, kind, id, onclick) => h("button", { type: "button", class: kind, "data-word": id, onclick }, name);
    if (waiting.length < 2) return null;
    if (isSure) return [ask("Approve all", "main", "approve-all", turn(false, "approve-sure")), choice("reject", "Reject all", { all: true }, "quiet", "all")];
    const pods = new Set(waiting.flatMap((item) => item.pods));
    return [h("span", {}, `${counted(pods.size, "pod")} would be moved.`), choice("approve", `Yes, approve all ${number(waiting.length)}`, { ids: waiting.map((item) => item.id) }, "main", "sure"), ask("Not yet", "quiet", "not-yet", turn(true, "approve-all"))];
  }

  async function word(verdict, what) {
    isSure = true;
    for (const each of root.querySelectorAll("[data-word]")) each.disabled = true;
    try {
      const found = await post("/approvals", { verdict, ...what });
      said.textContent = outcome(found.items, verdict);
    } catch (error) {
      said.textContent = error.message;
    }
    await changed();
    title.focus(); // what was clicked is gone
  }

  const page = {
    root,
    places: ["about"],
    /** #/approvals/about/NODE: what is proposed for it. */
    place(kind, text) {
      wanted = kind === "about" ? text : "";
    },
    async draw() {
      const found = await get("/approvals");
      now = found.now;
      const waiting = found.items.filter((item) => item.state === "waiting");
      waiting.sort((one, other) => other.is_proposed - one.is_proposed);
      const over = found.items.filter((item) => item.state !== "waiting");
      const held = document.activeElement?.dataset?.word;
      show(all, everything(waiting));
      if (!found.is_asked) {
        show(body, h("p", { class: "empty" }, "This daemon carries out its decisions without approval, so no proposals wait here."));
        return;
      }
      show(
        body,
        waiting.length ? [figures(waiting, found), h("div", { class: "asks" }, waiting.map((item) => card(item, found)))] : h("p", { class: "empty" }, "No proposals wait for approval. ", h("a", { href: "#/decisions" }, "Decisions"), " has what was done."),
        over.length > 0 && h("section", { class: "card" }, h("h2", {}, "Decided recently"), folded("answers", over.map(answer), { most: 8, what: "answer" })),
      );
      if (wanted) [...root.querySelectorAll("[data-about]")].find((each) => each.dataset.about.split(" ").includes(wanted))?.scrollIntoView({ block: "center" });
      wanted = "";
      if (held) root.querySelector(`[data-word="${held}"]`)?.focus();
    },
  };

  function figures(waiting, found) {
    const past = waiting.filter((item) => !item.is_proposed);
    const saves = waiting.reduce((sum, item) => sum + Number(item.saves_per_hour), 0);
    const pods = new Set(waiting.flatMap((item) => item.pods));
    const next = Math.min(...waiting.map((item) => item.until));
    return h(
      "div",
      { class: "totals" },
      figure("To approve", number(waiting.length), past.length ? (past.length === waiting.length ? "not in the current plan" : `${number(past.length)} of them not in the current plan`) : "each is approved or rejected as a whole", "lead"),
      figure("Would save", [price(saves), h("small", {}, ` ${found.currency}/h`)], [past.length ? "if all are approved and proposed again · " : "if all are approved · ", h("a", { href: "#/money/group" }, "cost by group")]),
      figure("Pods to move", number(pods.size), ["each card shows how and where to · ", h("a", { href: `#/now/find/${encodeURIComponent(alike(waiting))}` }, "their nodes")]),
      figure("Next", length(next - now), `until a proposal is ${silence(found)} without a decision`),
    );
  }

  const silence = (found) => (found.otherwise === "reject" ? "rejected" : "carried out");
  const choice = (verdict, name, what, kind, id, told = name) => h("button", { type: "button", class: kind, "data-word": `${verdict}-${id}`, "aria-label": told, onclick: () => word(verdict, what) }, name);

  function card(item, found) {
    const patience = (item.until - now) / (item.until - item.since);
    const what = `${NAMES[item.kind]} ${item.subject}`;
    const moves = new Map(item.moves.map((move) => [move.pod, move]));
    return h(
      "section",
      { class: `card ask ${item.is_proposed ? "" : "past"}`, "data-about": item.subject },
      h("header", {}, h("h2", {}, h("small", {}, `${NAMES[item.kind]} `), subject(item)), item.saves_per_hour && h("p", { class: "sum" }, h("b", { class: "good n" }, `−${price(item.saves_per_hour)}`), h("small", {}, ` ${found.currency}/h`))),
      h("p", {}, item.why),
      item.pods.length > 0 && [h("h3", {}, `${counted(item.pods.length, "pod")} to move`), folded("pods", item.pods.map((name) => h("li", { style: { "min-height": "24px" } }, pod(name), " ", h("span", { class: "note" }, leaves(moves.get(name))))), { most: 6, what: "pod" })],
      !item.is_proposed && h("p", { class: "note" }, `Not proposed since ${clock(item.proposed_last)}; an approval counts if HTAS proposes it again for the same pods.`),
      h("div", { class: "patience" }, h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: { "--part": Math.max(0, Math.min(1, patience)) } })), h("p", { class: "note" }, `proposed at ${clock(item.since)}; ${silence(found)} in ${length(item.until - now)} without a decision`)),
      h("div", { class: "chips" }, choice("approve", "Approve", { ids: [item.id] }, "main", item.id, `Approve: ${what}`), choice("reject", "Reject", { ids: [item.id] }, "quiet", item.id, `Reject: ${what}`)),
      h("details", {}, h("summary", {}, "In a terminal"), h("code", {}, `htas approve ${item.id}`)),
    );
  }

  const answer = (item) => h("li", { "data-about": item.subject }, h("b", { class: item.state === "approved" ? "good" : "bad" }, item.state), item.lapsed ? `, ${clock(item.said_at)}: ${item.lapsed}, after approval by ${item.who}: ` : ` by ${item.who}, ${clock(item.said_at)}${item.state === "approved" && !item.is_proposed && !item.is_begun ? `, ${unproposed(item)}` : ""}: `, h("span", { class: "note" }, `${NAMES[item.kind].toLowerCase()} `, subject(item), ` · ${[item.pods.length ? counted(item.pods.length, "pod") : "", item.why, item.saves_per_hour && `saves ${price(item.saves_per_hour)} per hour`].filter(Boolean).join("; ")}`));
  return page;
}
