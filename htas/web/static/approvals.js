// To approve: what would disturb running pods, and waits for a word.

import { get, post } from "./api.js";
import { h, show } from "./dom.js";
import { clock, counted, length, money } from "./words.js";

const NAMES = { drain: "Empty and return", replace: "Replace", preempt: "Preempt for", rearrange: "Rearrange", suggest: "Move nearer to users" };

export function approvals() {
  const said = h("p", { class: "said", role: "status" });
  const all = h("div", { class: "chips" });
  const body = h("div", { class: "stack" });
  const root = h("div", { class: "page" }, h("div", { class: "tools" }, h("h1", {}, "To approve"), all), said, body);
  let now = 0;

  async function word(verdict, what, button) {
    for (const each of root.querySelectorAll("button")) each.disabled = true;
    try {
      const found = await post("/approvals", { verdict, ...what });
      said.textContent = `${counted(found.items.length, "proposal")} ${verdict === "approve" ? "approved: carried out with the next cycles" : "rejected"}.`;
    } catch (error) {
      said.textContent = error.message;
    }
    await page.draw({ at: now });
    if (!root.contains(button)) root.querySelector("h1").focus?.();
  }

  const page = {
    root,
    async draw(cluster) {
      now = cluster.at;
      const found = await get("/approvals");
      const waiting = found.items.filter((item) => item.state === "waiting");
      const over = found.items.filter((item) => item.state !== "waiting");
      const held = document.activeElement?.dataset?.word;
      show(all, waiting.length > 1 && [choice("approve", "Approve all", { all: true }, "main", "all"), choice("reject", "Reject all", { all: true }, "quiet", "all")]);
      if (!found.is_asked) {
        show(body, h("p", { class: "empty" }, "Nothing waits for a word in this mode."));
        return;
      }
      show(
        body,
        waiting.length ? waiting.map((item) => card(item, found)) : h("p", { class: "empty" }, "Nothing waits for a word."),
        over.length > 0 && h("section", { class: "card" }, h("h2", {}, "Said of late"), h("ul", {}, over.map((item) => h("li", {}, h("b", { class: item.state === "approved" ? "good" : "bad" }, item.state), ` by ${item.who}, ${clock(item.said_at)}: `, item.told)))),
      );
      if (held) root.querySelector(`[data-word="${held}"]`)?.focus();
    },
  };

  const choice = (verdict, name, what, kind, id) => h("button", { type: "button", class: kind, "data-word": `${verdict}-${id}`, onclick: (event) => word(verdict, what, event.target) }, name);

  function card(item, found) {
    const shown = item.pods.slice(0, 12);
    const silence = found.otherwise === "reject" ? "rejected" : "carried out";
    const node = item.kind === "drain" ? h("a", { href: `#/approvals/node/${encodeURIComponent(item.subject)}` }, item.subject) : h("span", { class: "subject" }, item.subject);
    return h(
      "section",
      { class: "card ask" },
      h("h2", {}, `${NAMES[item.kind]} `, node),
      h("p", {}, item.why, item.saves_per_hour && [" · saves ", h("b", { class: "good" }, `${money(item.saves_per_hour)} ${found.currency}/h`)]),
      item.pods.length > 0 && h("p", { class: "note" }, `${counted(item.pods.length, "pod")} ${item.pods.length === 1 ? "leaves" : "leave"}: ${shown.join(", ")}${item.pods.length > shown.length ? ` and ${item.pods.length - shown.length} more` : ""}`),
      h("div", { class: "chips" }, choice("approve", "Approve", { ids: [item.id] }, "main", item.id), choice("reject", "Reject", { ids: [item.id] }, "quiet", item.id), h("span", { class: "note" }, `since ${clock(item.since)}; ${silence} in ${length(item.until - now)} if nobody says anything · `, h("code", {}, item.id))),
    );
  }
  return page;
}
