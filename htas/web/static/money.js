// Money: what was spent, when and on whom, and what the same work would have cost otherwise.

import { get, Refused } from "./api.js";
import { overTime, ranked } from "./chart.js";
import { figure, h, listed, show } from "./dom.js";
import { clock, counted, day, money, percent } from "./words.js";

const WINDOWS = [[6, "6 hours"], [24, "day"], [168, "week"], [720, "30 days"]];
const find = (text) => `#/now/find/${encodeURIComponent(text)}`;
const pods = (namespace) => `#/now/namespace/${encodeURIComponent(namespace)}`;
/** Where each part of the bill leads: to the machines, or to the pods, that it is of. */
const LEADS = { namespace: pods, owner: (key) => pods(key.split(" ")[0]), group: (key) => find(`-${key}-`), flavour: find };
const BY = { namespace: "namespace", owner: "owner", group: "node group", flavour: "flavour" };

export function moneyPage(again) {
  let hours = 24;
  const body = h("div", { class: "stack" });
  const choice = h("div", { class: "chips", role: "group", "aria-label": "Window" });
  const root = h("div", { class: "page" }, h("div", { class: "tools" }, h("h1", {}, "Money"), choice), body);
  let wanted = "";
  let last = null;
  const page = {
    root,
    places: Object.keys(BY),
    /** #/money/owner: the part that tells whose it was. */
    place(kind) {
      wanted = page.places.includes(kind) ? kind : "";
    },
    async draw(cluster) {
      last = cluster ?? last;
      show(
        choice,
        WINDOWS.map(([value, name]) =>
          h("button", { type: "button", class: "chip", "aria-pressed": String(value === hours), onclick: () => { hours = value; again(); } }, name),
        ),
      );
      let found;
      try {
        found = await get("/money", { hours });
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 503 || last?.mode !== "dump") throw error;
        show(body, h("p", { class: "empty" }, "No past to tell: ", error.message, ". ", h("a", { href: "#/what-if" }, "What if"), " tells what it costs now, and could."));
        return;
      }
      if (!Number(found.spent)) {
        show(body, h("p", { class: "empty" }, "Nothing was billed in this window: HTAS bought no machine in it. ", last?.mode === "recommend" && ["What is really spent here, and would be with HTAS, is under ", h("a", { href: "#/recommended" }, "Recommended"), "."]));
        return;
      }
      const others = await Promise.all(["homogeneous", "peak"].map((way) => get("/against", { way, hours })));
      show(body, figures(found), spending(found, hours), h("div", { class: "columns" }, otherwise(found, others), ...found.splits.map((split) => part(split, found))));
      if (wanted) body.querySelector(`[data-by="${wanted}"]`)?.scrollIntoView({ block: "start" });
      wanted = "";
    },
  };
  return page;
}

function figures(found) {
  const unit = found.currency;
  return h(
    "div",
    { class: "totals" },
    figure("Spent", [money(found.spent), h("small", {}, ` ${unit}`)], [`from ${day(found.since)} ${clock(found.since)} to ${day(found.until)} ${clock(found.until)} · `, h("a", { href: "#/money/namespace" }, "by whom")], "lead"),
    figure("Now", [money(found.price_per_hour), h("small", {}, ` ${unit}/h`)], [h("a", { href: "#/now" }, "which machines")]),
    figure("Idle", percent(found.idle_share), [`${money(found.idle)} ${unit} of it nobody asked for: free room, and time without work · `, h("a", { href: "#/what-if" }, "what if")]),
    figure("Month", [money(found.month_forecast), h("small", {}, ` ${unit}`)], [`forecast for ${found.month}: ${money(found.month_so_far)} so far, the rest at ${money(found.mean_per_hour)}/h as in the last day · `, h("a", { href: "#/decisions" }, "what was decided"), budget(found)], Number(found.month_budget) && Number(found.month_forecast) > Number(found.month_budget) ? "warn" : ""),
  );
}

/** The month's spending beside its budget, where one is stated. */
function budget(found) {
  const all = Number(found.month_budget);
  if (!all) return null;
  return h("span", { class: "budget" }, h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: { "--part": Math.min(1, Number(found.month_so_far) / all) } })), `${percent(Number(found.month_so_far) / all)} of the budget of ${money(all, 2)} spent${Number(found.month_forecast) > all ? `; the forecast is ${money(found.month_forecast - all, 2)} over it` : ""}`);
}

function spending(found, hours) {
  const wide = found.buckets[0].until - found.buckets[0].since;
  const name = wide < 86400 ? clock : (at) => day(at).replace(/ \d{4}$/, "");
  const first = Math.max(0, found.buckets.findIndex((bucket) => bucket.spent > 0) - 1); // before the first machine there is nothing to see
  const items = found.buckets.slice(first).map((bucket) => ({
    value: bucket.spent,
    least: null,
    since: bucket.since,
    title: `${day(bucket.since)} ${clock(bucket.since)}: ${money(bucket.spent)} ${found.currency}`,
  }));
  const every = hours <= 6 ? 3600 : hours <= 24 ? 2 * 3600 : 86400;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Spent ", wide < 3600 ? `each ${wide / 60} minutes` : wide < 86400 ? `each ${counted(wide / 3600, "hour").replace("1 ", "")}` : "each day"),
    overTime(items, {
      unit: found.currency,
      format: (value) => money(value, 3),
      tick: (item) => (item.since % every < wide ? name(item.since) : ""),
      told: `Bars of what was spent, ${money(found.spent)} ${found.currency} in all.`,
    }),
    h("details", {}, h("summary", {}, "As a table"), table(items, found)),
  );
}

/** To a millionth, as the bills are added up: so rows come to what is told of all. */
const exact = (value) => Number(value).toLocaleString("en", { minimumFractionDigits: 6, maximumFractionDigits: 6 });
const amounts = (name, spent) => [name, exact(spent)];

const table = (items, found) =>
  listed(
    ["From (UTC)", [`Spent, ${found.currency}`]],
    [
      ...items.filter((item) => item.value).map((item) => amounts(`${day(item.since)} ${clock(item.since)}`, item.value)),
      amounts(h("b", {}, "together"), found.spent),
    ],
  );

function otherwise(found, others) {
  const spent = Number(found.spent);
  const told = others.filter((other) => other.amount);
  const rows = [
    { name: "Spent", value: spent, kind: "mine" },
    ...told.map((other) => ({ name: other.way === "peak" ? `Its peak, always: ${other.machines} × ${other.flavour}` : `Only ${other.flavour}, the cheapest single flavour`, value: Number(other.amount), under: other.saved_share >= 0 ? `HTAS spends ${percent(other.saved_share)} less` : `HTAS spends ${percent(-other.saved_share)} more` })),
  ];
  const missing = others.filter((other) => !other.amount);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "The same work otherwise"),
    ranked(rows, { of: Math.max(...rows.map((row) => row.value)), format: (value) => money(value), caption: "What the same work would have cost otherwise" }),
    missing.map((other) => h("p", { class: "note" }, `${other.way}: ${other.told}`)),
    (told[0]?.assumes ?? []).map((line) => h("p", { class: "note" }, line)),
    h("p", { class: "note" }, "Another flavour or rule: ", h("a", { href: "#/what-if" }, "what if"), "."),
  );
}

function part(split, found) {
  const rows = split.parts.map((each) => ({ name: each.key, href: each.key === "(idle)" ? "#/now" : LEADS[split.by](each.key), value: Number(each.amount), kind: each.key === "(idle)" ? "idle" : "", note: percent(Number(each.amount) / Number(found.spent)) }));
  return h("section", { class: "card", "data-by": split.by }, h("h2", {}, `By ${BY[split.by]}`), ranked(rows, { of: Math.max(...rows.map((row) => row.value)), format: (value) => money(value), caption: `Spent by ${BY[split.by]}`, most: 10 }));
}
