// Recommended: what HTAS would do, and what it would have saved by now; nothing of it is carried out.

import { get, Refused } from "./api.js";
import { overTime } from "./chart.js";
import { figure, folded, h, nodeLink, podLink, show } from "./dom.js";
import { clock, counted, day, length, money, percent } from "./words.js";

const VERBS = { launch: "buy", drain: "empty and return", migrate: "move", evict: "start anew elsewhere", preempt: "preempt", search: "rearrange" };
const DOTS = { launch: "buy", drain: "empty", migrate: "move", evict: "evict", preempt: "preempt" };

export function recommended() {
  const body = h("div", { class: "stack" });
  const root = h("div", { class: "page" }, h("div", { class: "tools" }, h("h1", {}, "Recommended")), body);
  return {
    root,
    async draw() {
      let found;
      try {
        found = await get("/recommendation");
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) throw error;
        show(body, h("p", { class: "empty" }, "This daemon acts by itself: it recommends nothing. What it has done is under ", h("a", { href: "#/decisions" }, "Decisions"), "."));
        return;
      }
      if (!found.told.length) {
        show(body, h("p", { class: "empty" }, "Both courses begin with the first look at the cluster."));
        return;
      }
      show(body, figures(found), found.lacking ? h("p", { class: "quiet-line" }, `${found.lacking}.`) : null, course(found), h("div", { class: "halves wide" }, advice(found), price(found)));
    },
  };
}

function figures(found) {
  const unit = found.currency;
  const saves = Number(found.saved) >= 0;
  return h(
    "div",
    { class: "totals" },
    figure(saves ? "Would have saved" : "Would have cost more", [money(Math.abs(found.saved)), h("small", {}, ` ${unit}`)], [`${percent(Math.abs(found.saved_share))} of what was spent since ${day(found.since)} ${clock(found.since)} · `, h("a", { href: "#/decisions" }, "how")], "lead"),
    figure("Spent", [money(found.real.spent), h("small", {}, ` ${unit}`)], [`with HTAS ${money(found.with_htas.spent)} · `, h("a", { href: "#/decisions/buy" }, "what it would have bought")]),
    figure("Now", [money(found.real.price_per_hour), h("small", {}, ` ${unit}/h`)], [h("a", { href: "#/now" }, counted(found.real.machines, "machine")), `; with HTAS ${found.with_htas.machines} for ${money(found.with_htas.price_per_hour)}`]),
    figure(saves ? "In thirty days" : "More in thirty days", [money(Math.abs(found.month)), h("small", {}, ` ${unit}`)], `if they are as the last ${length(found.at - found.since)}`),
  );
}

function course(found) {
  if (found.points.length < 2) return h("p", { class: "quiet-line" }, "Both courses are drawn here once some minutes have passed.");
  const items = found.points.map((point) => ({
    value: point.real,
    least: point.with_htas,
    at: point.at,
    title: `${day(point.at)} ${clock(point.at)}: ${money(point.real)} ${found.currency}/h, with HTAS ${money(point.with_htas)}`,
  }));
  const all = found.points.at(-1).at - found.points[0].at;
  let last = "";
  const name = (item) => {
    const text = all > 2 * 86400 ? day(item.at).replace(/ \d{4}$/, "") : `${clock(item.at).slice(0, 3)}00`;
    const told = text === last ? "" : text;
    last = text;
    return told;
  };
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "What the machines cost an hour"),
    overTime(items, { isSolid: true, unit: `${found.currency}/h`, format: (value) => money(value, 2), tick: name, told: `Bars of what the machines really cost an hour, ${money(found.real.price_per_hour)} now, and a line of what they would cost with HTAS, ${money(found.with_htas.price_per_hour)} now.` }),
    h("p", { class: "key" }, h("span", { class: "swatch area" }), "really ", h("span", { class: "swatch least" }), "with HTAS in charge of the same work"),
  );
}

function advice(found) {
  const steps = stepsOf(found.advice);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "What it would do first"),
    steps.length ? folded("steps", steps.map(step), { most: 12, what: "step" }) : h("p", { class: "note" }, "Nothing now: the cluster as it is would be left so."),
    h("p", { class: "note" }, "To the cluster as it is, were HTAS let from now on. What it would have done since ", `${day(found.since)} is under `, h("a", { href: "#/decisions" }, "Decisions"), "."),
  );
}

/** What would be done, each with the pods that leave for it: those of a node that is emptied stand under it. */
function stepsOf(advice) {
  const emptied = new Set(advice.filter((each) => each.verb === "drain").map((each) => each.subject));
  const isUnder = (each) => each.verb !== "drain" && emptied.has(each.source);
  return advice.filter((each) => !isUnder(each)).map((each) => ({ ...each, pods: each.verb === "drain" ? advice.filter((other) => isUnder(other) && other.source === each.subject) : [] }));
}

const step = (each) =>
  h(
    "li",
    { "data-verb": DOTS[each.verb] ?? "" },
    h("span", { class: "dot" }),
    h("div", {}, h("p", {}, h("b", {}, VERBS[each.verb] ?? each.verb), " ", target(each)), h("p", { class: "note" }, each.why), each.pods.length > 0 && folded("pods", each.pods.map((other) => h("li", {}, target(other), " ", h("span", { class: "note" }, other.target ? ["to ", node(other.target)] : "starts anew elsewhere"))), { most: 8, what: "pod" })),
  );

const node = (name) => nodeLink(name, "#/recommended");

function target(each) {
  if (each.verb === "drain") return node(each.subject);
  const isPod = ["migrate", "evict", "preempt"].includes(each.verb);
  return isPod ? podLink(each.subject, "#/recommended") : h("span", { class: "subject" }, each.subject);
}

function price(found) {
  const row = (name, real, ours, of = "") => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "n" }, real), h("td", { class: "n" }, of && ours !== "0" ? h("a", { href: `#/decisions/${of}` }, ours) : ours));
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "What that would have taken"),
    h(
      "table",
      { class: "list" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "What")), h("th", { scope: "col", class: "n" }, "really"), h("th", { scope: "col", class: "n" }, "with HTAS"))),
      h(
        "tbody",
        {},
        row("pods waited, on average", length(found.real.mean_wait_s), length(found.with_htas.mean_wait_s)),
        row("pods started anew elsewhere", "0", String(found.evicted), "evict"),
        row("pods moved with their progress", "0", String(found.moved), "move"),
        found.overrun_s >= 60 && row("work counted too long", "", length(found.overrun_s)),
      ),
    ),
    h("p", { class: "note" }, "Pods come and end as they really do; machines, places and moves are HTAS's, in a sandbox. Machines take as long to come as configured; quotas and failures of the cloud are not played."),
  );
}
