// Recommended: what HTAS would do, and what it would have saved. Nothing is carried out.

import { get, Refused } from "./api.js";
import { overTime } from "./chart.js";
import { figure, folded, h, nodeLink, podLink, show } from "./dom.js";
import { clock, counted, day, length, money, percent, price as hourly } from "./words.js";

const VERBS = { launch: "launch", drain: "drain and delete", migrate: "migrate", evict: "evict and restart elsewhere", preempt: "preempt", search: "rearrange" };
const DOTS = { launch: "launch", drain: "drain", migrate: "move", evict: "evict", preempt: "preempt" };

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
        show(body, h("p", { class: "empty" }, "This daemon carries out its decisions, so it recommends nothing. See ", h("a", { href: "#/decisions" }, "Decisions"), "."));
        return;
      }
      if (!found.told.length) {
        show(body, h("p", { class: "empty" }, "No figures yet: they begin with the first cycle."));
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
    figure(saves ? "Would have saved" : "Would have cost more", [money(Math.abs(found.saved)), h("small", {}, ` ${unit}`)], [`${percent(Math.abs(found.saved_share))} of what was spent since ${day(found.since)} ${clock(found.since)} · `, h("a", { href: "#/decisions" }, "decisions")], "lead"),
    figure("Spent", [money(found.real.spent), h("small", {}, ` ${unit}`)], [`with HTAS ${money(found.with_htas.spent)} · `, h("a", { href: "#/decisions/launch" }, "launches it would have made")]),
    figure("Now", [hourly(found.real.price_per_hour), h("small", {}, ` ${unit}/h`)], [h("a", { href: "#/now" }, counted(found.real.machines, "machine")), `; with HTAS ${found.with_htas.machines} for ${hourly(found.with_htas.price_per_hour)}`]),
    figure(saves ? "In 30 days" : "More in 30 days", [money(Math.abs(found.month)), h("small", {}, ` ${unit}`)], `at the rate of the last ${length(found.at - found.since)}`),
  );
}

function course(found) {
  if (found.points.length < 2) return h("p", { class: "quiet-line" }, "The chart of both costs appears after a few minutes.");
  const items = found.points.map((point) => ({
    value: point.real,
    least: point.with_htas,
    at: point.at,
    title: `${day(point.at)} ${clock(point.at)}: ${hourly(point.real)} ${found.currency}/h, with HTAS ${hourly(point.with_htas)}`,
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
    h("h2", {}, "Cost of the machines per hour"),
    overTime(items, { isSolid: true, unit: `${found.currency}/h`, format: money, tick: name, told: `Bars of what the machines really cost per hour, ${hourly(found.real.price_per_hour)} now, and a line of what they would cost with HTAS, ${hourly(found.with_htas.price_per_hour)} now.` }),
    h("p", { class: "key" }, h("span", { class: "swatch area" }), "actual ", h("span", { class: "swatch least" }), "with HTAS, for the same work"),
  );
}

function advice(found) {
  const steps = stepsOf(found.advice);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "What it would do next"),
    steps.length ? folded("steps", steps.map(step), { most: 12, what: "step" }) : h("p", { class: "note" }, "Nothing now: HTAS would leave the cluster as it is."),
    h("p", { class: "note" }, "The first steps from the cluster as it is. ", h("a", { href: "#/decisions" }, "Decisions"), ` has what it would have done since ${day(found.since)}.`),
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
    h("div", {}, h("p", {}, h("b", {}, VERBS[each.verb] ?? each.verb), " ", target(each)), h("p", { class: "note" }, each.why), each.pods.length > 0 && folded("pods", each.pods.map((other) => h("li", {}, target(other), " ", h("span", { class: "note" }, other.target ? ["to ", node(other.target)] : "restarts elsewhere"))), { most: 8, what: "pod" })),
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
    h("h2", {}, "Effect on pods"),
    h(
      "table",
      { class: "list" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "What")), h("th", { scope: "col", class: "n" }, "actual"), h("th", { scope: "col", class: "n" }, "with HTAS"))),
      h(
        "tbody",
        {},
        row("pods were pending, on average", length(found.real.mean_wait_s), length(found.with_htas.mean_wait_s)),
        row("pods restarted elsewhere", "0", String(found.evicted), "evict"),
        row("pods migrated with progress", "0", String(found.moved), "move"),
        found.overrun_s >= 60 && row("run time counted too long", "", length(found.overrun_s)),
      ),
    ),
    h("p", { class: "note" }, "HTAS simulates its machines, placements and moves for the pods that really ran. Machines start in the configured time; cloud quotas and failures are not simulated."),
  );
}
