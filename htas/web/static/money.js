// Money: what was spent, by time and by whom, what HTAS saved, and what to change.

import { get, Refused } from "./api.js";
import { overTime, ranked } from "./chart.js";
import { csvButton, figure, h, listed, show } from "./dom.js";
import { clock, counted, day, keyName, kindOf, local, money, percent, price, spoken, zone } from "./words.js";

const WINDOWS = [[6, "6 hours"], [24, "24 hours"], [168, "7 days"], [720, "30 days"]];
const find = (text) => `#/now/find/${encodeURIComponent(text)}`;
const pods = (namespace) => `#/now/namespace/${encodeURIComponent(namespace)}`;
/** Where each part of the bill leads: to its machines, or to its pods. */
const LEADS = { namespace: pods, owner: (key) => pods(key.split(" ")[0]), group: (key) => find(`-${key}-`), flavour: find };
const BY = { namespace: "namespace", owner: "workload", group: "node group", flavour: "flavour" };
const HOURS_OF_A_MONTH = 730;

export function moneyPage(again) {
  let hours = 24;
  let range = null; // {since, until}, in seconds: a custom one
  const body = h("div", { class: "stack" });
  const choice = h("div", { class: "chips", role: "group", "aria-label": "Time range" });
  const form = h("form", { class: "range", hidden: true, onsubmit: chosen });
  const root = h("div", { class: "page" }, h("div", { class: "tools" }, h("h1", {}, "Money"), choice), form, body);
  let wanted = "";
  let last = null;

  function chosen(event) {
    event.preventDefault();
    const at = (name) => Math.floor(new Date(form.elements[name].value).getTime() / 1000);
    form.elements.until.setCustomValidity(at("since") < at("until") ? "" : "Until must be later than From");
    if (form.reportValidity()) location.hash = `#/money/range/${at("since")}/${at("until")}`;
  }

  function fields(found) {
    const field = (name, title, at) => h("label", {}, h("span", {}, title), h("input", { type: "datetime-local", name, required: true, value: local(at), oninput: () => form.elements.until.setCustomValidity("") }));
    show(form, field("since", "From", range?.since ?? found.since), field("until", "Until", range?.until ?? found.until), h("button", { class: "quiet" }, "Show"), h("span", { class: "note" }, zone(found.until)));
  }

  function windows(found) {
    const chip = (name, isPressed, onclick) => h("button", { type: "button", class: "chip", "aria-pressed": String(isPressed), onclick }, name);
    const open = () => {
      form.hidden = !form.hidden;
      if (form.hidden) return;
      fields(found ?? { since: last.at - hours * 3600, until: last.at });
      form.elements.since.focus();
    };
    const last_of = (value) => () => {
      [hours, range, form.hidden] = [value, null, true];
      if (location.hash.startsWith("#/money/range")) location.hash = "#/money";
      else again();
    };
    show(choice, ...WINDOWS.map(([value, name]) => chip(name, !range && value === hours, last_of(value))), chip("Custom", Boolean(range), open));
  }

  const page = {
    root,
    places: [...Object.keys(BY), "range"],
    /** #/money/owner: the table by workload; #/money/range/SINCE/UNTIL, in seconds. */
    place(kind, rest) {
      wanted = kind in BY ? kind : "";
      const [since, until] = (rest ?? "").split("/").map(Number);
      if (kind === "range" && until > since) range = { since, until };
      else if (kind !== "range" && !wanted) range = null;
    },
    async draw(cluster) {
      last = cluster ?? last;
      windows(null);
      const asked = range ?? { hours };
      let found;
      try {
        found = await get("/money", asked);
      } catch (error) {
        if (error instanceof Refused && error.status === 400) {
          show(body, h("p", { class: "empty" }, "No figures for this range: ", error.message, "."));
          return;
        }
        if (!(error instanceof Refused) || error.status !== 503 || last?.mode !== "dump") throw error;
        show(body, h("p", { class: "empty" }, "A dump has no history of spending. ", h("a", { href: "#/what-if" }, "What if"), " has the cost now and the cheapest mix."));
        return;
      }
      windows(found);
      if (!Number(found.spent)) {
        show(body, h("p", { class: "empty" }, `No machine of HTAS was billed ${spanOf(found)}. `, last?.mode === "recommend" && ["For the actual cost and the cost with HTAS see ", h("a", { href: "#/recommended" }, "Recommended"), "."]));
        return;
      }
      const others = await Promise.all(["homogeneous", "peak"].map((way) => get("/against", { way, ...asked })));
      const rows = otherwise(found, others);
      const scale = Math.max(...rows.map((row) => row.value), ...found.splits.flatMap((split) => split.parts.map((each) => Number(each.amount))));
      show(
        body,
        figures(found, others[0]),
        h("div", { class: "lead-row" }, spending(found), advice(found, last, others[0])),
        h("div", { class: "columns" }, compared(rows, others, scale), ...found.splits.map((split) => part(split, found, scale))),
      );
      if (wanted) body.querySelector(`[data-by="${wanted}"]`)?.scrollIntoView({ block: "start" });
      wanted = "";
    },
  };
  return page;
}

const spanOf = (found) => `from ${day(found.since)} ${clock(found.since)} to ${day(found.until)} ${clock(found.until)}`;

/** How spending compares with the time of the same length before. */
function change(found) {
  if (found.before === "") return "no records of the period before";
  const [spent, before] = [Number(found.spent), Number(found.before)];
  if (!before) return "nothing in the period before";
  const share = (spent - before) / before;
  return Math.abs(share) < 0.005 ? `as in the period before (${money(before)})` : `${percent(Math.abs(share))} ${share < 0 ? "less" : "more"} than in the period before (${money(before)})`;
}

function figures(found, single) {
  const unit = found.currency;
  const saved = Number(single.saved);
  const isOver = Number(found.month_budget) && Number(found.month_forecast) > Number(found.month_budget);
  return h(
    "div",
    { class: "totals" },
    figure("Spent", [money(found.spent), h("small", {}, ` ${unit}`)], [`${spanOf(found)} · ${change(found)}`], "lead"),
    single.amount
      ? figure(saved >= 0 ? "Saved with HTAS" : "HTAS cost more", [money(Math.abs(saved)), h("small", {}, ` ${unit}`)], `${percent(Math.abs(single.saved_share))} ${saved >= 0 ? "less" : "more"} than the same work on ${single.flavour} alone, the cheapest single flavour`, saved >= 0 ? "saves" : "warn")
      : figure("Saved with HTAS", "–", single.told),
    figure("Cost now", [price(found.price_per_hour), h("small", {}, ` ${unit}/h`)], [h("a", { href: "#/now" }, "machines")]),
    figure("Month", [money(found.month_forecast), h("small", {}, ` ${unit}`)], [`forecast for ${found.month}: ${money(found.month_so_far)} so far, the rest at ${price(found.mean_per_hour)}/h, the mean of the last day`, budget(found)], isOver ? "warn" : ""),
  );
}

/** The month's spending and its budget, where there is one. */
function budget(found) {
  const all = Number(found.month_budget);
  if (!all) return null;
  return h("span", { class: "budget" }, h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: { "--part": Math.min(1, Number(found.month_so_far) / all) } })), `${percent(Number(found.month_so_far) / all)} of the budget of ${money(all)} spent${Number(found.month_forecast) > all ? `; the forecast is ${money(found.month_forecast - all)} over it` : ""}`);
}

/** Nodes that a rule or a pod keeps, and idle capacity: what costs most, and what would change it. */
function advice(found, cluster, single) {
  const unit = found.currency;
  const monthly = (perHour) => `${price(perHour)} ${unit}/h, about ${money(perHour * HOURS_OF_A_MONTH)} a month`;
  const held = (cluster?.reasons ?? [])
    .filter((each) => ["held", "others", "trouble"].includes(kindOf(each.reason)) && Number(each.price_per_hour))
    .sort((one, other) => Number(other.price_per_hour) - Number(one.price_per_hour))
    .slice(0, 3)
    .map((each) => h("li", {}, h("b", {}, `${counted(each.nodes, "node")}: ${spoken(each.reason)}`), h("span", { class: "note" }, ` ${monthly(Number(each.price_per_hour))}. ${each.meaning.remedy || each.meaning.says}`)));
  const dearer = Number(single.saved) < 0 && h("li", {}, h("b", {}, `${single.flavour} alone was cheaper`), h("span", { class: "note" }, ` by ${money(-single.saved)} ${unit} in this time. Compare flavours and rules in `, h("a", { href: "#/what-if" }, "What if"), "."));
  const idle = Number(found.idle) > 0 && h("li", {}, h("b", {}, `${percent(found.idle_share)} idle capacity`), h("span", { class: "note" }, ` ${money(found.idle)} ${unit} for capacity that no pod requested. `, h("a", { href: "#/what-if" }, "What if"), " has the cheapest mix for the pods that run now."));
  const items = [...held, dearer, idle].filter(Boolean);
  return h("section", { class: "card advice" }, h("h2", {}, "What to change"), items.length ? h("ul", {}, items) : h("p", { class: "note" }, "Nothing stands out: no rule or pod keeps a node, and no capacity is idle."));
}

function spending(found) {
  const wide = found.buckets[0].until - found.buckets[0].since;
  const name = wide < 86400 ? clock : (at) => day(at).replace(/ \d{4}$/, "");
  const first = Math.max(0, found.buckets.findIndex((bucket) => bucket.spent > 0) - 1); // before the first machine there is nothing to see
  const items = found.buckets.slice(first).map((bucket) => ({
    value: bucket.spent,
    least: null,
    since: bucket.since,
    title: `${day(bucket.since)} ${clock(bucket.since)}: ${money(bucket.spent)} ${found.currency}`,
  }));
  const hours = (found.until - found.since) / 3600;
  const every = hours <= 6 ? 3600 : hours <= 26 ? 2 * 3600 : 86400;
  return h(
    "section",
    { class: "card" },
    h("div", { class: "tools" }, h("h2", {}, "Spent ", wide < 3600 ? `per ${wide / 60} minutes` : wide < 86400 ? `per ${counted(wide / 3600, "hour").replace(/^1 /, "")}` : wide === 86400 ? "per day" : "per week"), csvButton("spending", ["since", "until", "spent", "currency"], () => found.buckets.map((each) => [new Date(each.since * 1000).toISOString(), new Date(each.until * 1000).toISOString(), each.spent, found.currency]))),
    overTime(items, {
      unit: found.currency,
      format: (value) => (Number(value) ? (value < 0.095 ? Number(value).toFixed(3) : money(value)) : "0"),
      tick: (item) => (item.since % every < wide ? name(item.since) : ""),
      told: `Bars of what was spent, ${money(found.spent)} ${found.currency} in all.`,
    }),
    h("details", {}, h("summary", {}, "As a table"), table(items, found)),
  );
}

/** To a millionth, as bills are added up: the rows then add up to the total. */
const exact = (value) => Number(value).toLocaleString("en", { minimumFractionDigits: 6, maximumFractionDigits: 6 });
const amounts = (name, spent) => [name, exact(spent)];

const table = (items, found) =>
  listed(
    [`From (${zone(found.until)})`, [`Spent, ${found.currency}`]],
    [
      ...items.filter((item) => item.value).map((item) => amounts(`${day(item.since)} ${clock(item.since)}`, item.value)),
      amounts(h("b", {}, "Total"), found.spent),
    ],
  );

/** What the same work would have cost otherwise. */
function otherwise(found, others) {
  const told = others.filter((other) => other.amount);
  const rows = [
    { name: "Spent", value: Number(found.spent), kind: "mine" },
    ...told.map((other) => ({ name: other.way === "peak" ? `Peak capacity all the time: ${other.machines} × ${other.flavour}` : `Only ${other.flavour}, the cheapest single flavour`, value: Number(other.amount), under: `HTAS spends ${percent(Math.abs(other.saved_share))} ${other.saved_share >= 0 ? "less" : "more"}` })),
  ];
  return rows;
}

function compared(rows, others, scale) {
  const missing = others.filter((other) => !other.amount);
  return h(
    "section",
    { class: "card" },
    h("div", { class: "tools" }, h("h2", {}, "The same work in other ways"), csvButton("comparison", ["way", "amount"], () => rows.map((row) => [row.name, row.value]))),
    ranked(rows, { of: scale, format: money, caption: "Cost of the same work in other ways" }),
    missing.map((other) => h("p", { class: "note" }, `${other.way}: ${other.told}`)),
    h("details", {}, h("summary", {}, "Assumptions"), (others.find((other) => other.amount)?.assumes ?? []).map((line) => h("p", { class: "note" }, line))),
    h("p", { class: "note" }, "For another flavour or rule: ", h("a", { href: "#/what-if" }, "What if"), "."),
  );
}

function part(split, found, scale) {
  const named = (key) => (split.by === "owner" ? keyName(key).replace(" ", " · ").replaceAll("#", "*") : keyName(key));
  const isRest = (key) => /^\(\d+ others\)$/.test(key);
  const rows = split.parts.map((each) => ({ name: each.key === "(idle)" ? keyName(each.key) : named(each.key), href: each.key === "(idle)" ? "#/now" : isRest(each.key) ? null : LEADS[split.by](each.key), value: Number(each.amount), kind: each.key === "(idle)" ? "idle" : "", note: percent(Number(each.amount) / Number(found.spent)) }));
  return h("section", { class: "card", "data-by": split.by }, h("div", { class: "tools" }, h("h2", {}, `By ${BY[split.by]}`), csvButton(`spent-by-${split.by}`, [split.by, "amount", "currency"], () => split.parts.map((each) => [each.key, each.amount, found.currency]))), ranked(rows, { of: scale, format: money, caption: `Spent by ${BY[split.by]}`, most: 10 }));
}
