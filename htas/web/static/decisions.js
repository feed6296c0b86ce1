// Decisions: launches, drains, deletions, moves and preemptions, with reasons and savings.

import { get } from "./api.js";
import { csvButton, figure, h, settled, show } from "./dom.js";
import { became, counted, day, DONE, inWords, local, money, number, price, seconds, zone } from "./words.js";

/** What was done, or would have been. */
const named = (kind, isAdvice) => became(kind, isAdvice ? "recommended" : "done");

/** More decisions in a row than these that are alike are folded into one line. */
const FOLDED = 3;
const SAME = ["cycle", "kind", "status", "flavour", "why", "group", "price_per_hour"];
/** Moves and evictions of one drain differ in their sizes and targets; they are one event for the reader. */
const OF_PODS = ["kind", "status"];
const PODS = ["move", "evict"];
/** Ranges of time, in hours; 0: all. */
const RANGES = [[0, "All"], [1, "Last hour"], [6, "6 hours"], [24, "24 hours"], [168, "7 days"]];
const CSV = ["at", "kind", "status", "subject", "flavour", "group", "pods", "price_per_hour", "saved", "why", "cycle"];
const PAGE_OF = 60;
const MOST = 500;

/** Decisions in their order, those in a row that are alike together. */
function alike(items) {
  const found = [];
  for (const item of items) {
    const before = found.at(-1)?.[0];
    const same = PODS.includes(item.kind) ? OF_PODS : SAME;
    if (before && same.every((name) => before[name] === item[name])) found.at(-1).push(item);
    else found.push([item]);
  }
  return found;
}

export function decisions(again) {
  const chosen = { kind: "", text: "" };
  let hours = 0;
  let range = null; // {since, until}, in seconds: a custom one
  let more = PAGE_OF;
  let last = null;
  const totals = h("div", { class: "totals brief" });
  const saved = h("p", { class: "note" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Kinds of decisions" });
  const times = h("div", { class: "chips", role: "group", "aria-label": "Time range" });
  const form = h("form", { class: "range", hidden: true, onsubmit: ranged });
  const list = h("div", { class: "timeline" });
  const opened = new Map();
  const unfolded = new Set();
  const search = h("input", { type: "search", placeholder: "Machine, pod or reason", "aria-label": "Find decisions", oninput: settled(200, (event) => { chosen.text = event.target.value.trim(); again(); }) });
  const root = h("div", { class: "page" }, h("div", { class: "tools" }, h("h1", {}, "Decisions"), times), form, totals, saved, h("div", { class: "tools" }, chips, h("div", { class: "chips" }, search, csvButton("decisions", CSV, exported))), list);

  const within = () => range ?? (hours && last ? { since: Math.floor(last.at - hours * 3600) } : {});

  /** All decisions that match, in pages as large as the API sends them. */
  async function exported() {
    const rows = [];
    let found = null;
    do {
      found = await get("/decisions", { ...chosen, ...within(), limit: MOST, before: found?.before });
      rows.push(...found.items.map((item) => CSV.map((name) => (name === "at" ? new Date(item.at * 1000).toISOString() : item[name]))));
    } while (found.before !== null);
    return rows;
  }

  function ranged(event) {
    event.preventDefault();
    const at = (name) => Math.floor(new Date(form.elements[name].value).getTime() / 1000);
    form.elements.until.setCustomValidity(at("since") < at("until") ? "" : "Until must be later than From");
    if (!form.reportValidity()) return;
    range = { since: at("since"), until: at("until") };
    again();
  }

  function ranges() {
    const chip = (name, isPressed, onclick) => h("button", { type: "button", class: "chip", "aria-pressed": String(isPressed), onclick }, name);
    const field = (name, title, at) => h("label", {}, h("span", {}, title), h("input", { type: "datetime-local", name, required: true, value: local(at), oninput: () => form.elements.until.setCustomValidity("") }));
    const open = () => {
      form.hidden = !form.hidden;
      if (form.hidden) return;
      show(form, field("since", "From", range?.since ?? last.at - 3600), field("until", "Until", range?.until ?? last.at), h("button", { class: "quiet" }, "Show"), h("span", { class: "note" }, zone(last.at)));
      form.elements.since.focus();
    };
    const choose = (value) => () => {
      [hours, range, form.hidden, more] = [value, null, true, PAGE_OF];
      again();
    };
    show(times, ...RANGES.map(([value, name]) => chip(name, !range && value === hours, choose(value))), chip("Custom", Boolean(range), open));
  }

  const page = {
    root,
    places: [...Object.keys(DONE), "all"],
    /** #/decisions/launch: those of a kind; #/decisions/all/TEXT: those about a node or a pod. */
    place(kind, text) {
      if (!page.places.includes(kind)) return;
      chosen.kind = kind === "all" ? "" : kind;
      chosen.text = search.value = text;
    },
    async draw(cluster) {
      last = cluster ?? last;
      ranges();
      const found = await get("/decisions", { ...chosen, ...within(), limit: Math.min(MOST, more) });
      show(totals, figures(found));
      show(saved, found.begins ? `This daemon decides since ${day(found.begins)} ${seconds(found.begins)}. ` : "", found.is_advice ? "" : ["What HTAS saved is under ", h("a", { href: "#/money" }, "Money"), "."]);
      const kinds = Object.keys(DONE).filter((kind) => found.counts[kind]);
      show(
        chips,
        kinds.map((kind) =>
          h("button", { type: "button", class: "chip", "data-verb": kind, "aria-pressed": String(chosen.kind === kind), onclick: () => { chosen.kind = chosen.kind === kind ? "" : kind; again(); } }, h("span", { class: "dot" }), named(kind, found.is_advice), h("span", { class: "n faint" }, number(found.counts[kind]))),
        ),
      );
      const focus = document.activeElement?.dataset?.number;
      show(list, found.items.length ? days(found) : h("p", { class: "empty" }, nothing(found, kinds)));
      if (found.before !== null && more < MOST) list.append(h("button", { type: "button", class: "quiet more", onclick: () => { more += 200; again(); } }, "Show older decisions"));
      if (focus) list.querySelector(`[data-number="${focus}"]`)?.focus();
    },
  };

  function nothing(found, kinds) {
    if (kinds.length) return "No decision matches the chosen kind and the search.";
    if (range || hours) return "No decisions in this time.";
    return found.is_advice ? "HTAS would have changed nothing yet." : "HTAS has changed nothing yet: it has launched and deleted no machine.";
  }

  function days(found) {
    const sections = [];
    let last = "";
    for (const [item, ...others] of alike(found.items)) {
      const date = day(item.at);
      if (date !== last) sections.push(h("h2", {}, date), h("ol", {}));
      last = date;
      const rows = others.map((other) => row(other, found.currency));
      const isFolded = rows.length >= FOLDED && !unfolded.has(item.number);
      sections.at(-1).append(row(item, found.currency), ...(isFolded ? [fold(item, rows, found.is_advice)] : rows));
    }
    return sections;
  }

  /** Stands for rows like the one before; a click shows them, for as long as the page is open. */
  function fold(item, rows, isAdvice) {
    const what = PODS.includes(item.kind) ? `${counted(rows.length, "more pod")} ${became(item.kind, item.status)}` : `${number(rows.length)} more ${named(item.kind, isAdvice)} alike`;
    const line = h("li", { class: "fold" }, h("button", { type: "button", class: "quiet", onclick: () => { unfolded.add(item.number); line.replaceWith(...rows); rows[0].querySelector("a")?.focus(); } }, what));
    return line;
  }

  function row(item, currency) {
    const answer = h("div", { class: "again", role: "status" });
    const tell = (replayed) => show(answer, replayed.differences.length ? [h("p", {}, `Under today's policy, ${counted(replayed.differences.length, "difference")}:`), h("ol", { class: "lines" }, replayed.differences.slice(0, 20).map((line) => h("li", {}, line)))] : h("p", { class: "same" }, "Today's policy gives the same plan."));
    if (opened.has(item.number)) tell(opened.get(item.number));
    const replay = async (event) => {
      event.target.disabled = true;
      try {
        opened.set(item.number, await get(`/cycles/${item.cycle}/replay`));
        tell(opened.get(item.number));
      } catch (error) {
        show(answer, h("p", {}, error.message));
      }
      event.target.disabled = false;
    };
    return h(
      "li",
      { "data-verb": item.kind, class: item.status },
      h("time", { datetime: new Date(item.at * 1000).toISOString() }, seconds(item.at)),
      h("span", { class: "dot" }),
      h(
        "div",
        { class: "said" },
        h("p", {}, h("b", {}, became(item.kind, item.status)), " ", item.flavour && `${item.flavour} `, h("a", { class: "subject", href: `#/decisions/all/${encodeURIComponent(item.subject)}`, title: "All decisions about it" }, item.subject)),
        item.why && h("p", { class: "note" }, inWords(item.why), item.group && ` · group ${item.group}`),
        answer,
      ),
      h("p", { class: "sum n" }, sum(item, currency)),
      item.cycle !== null ? h("button", { type: "button", class: "text", "data-number": item.number, onclick: replay, title: `Plan cycle ${item.cycle} again under today's policy`, "aria-label": `Plan cycle ${item.cycle} again` }, "Plan again") : h("span", {}),
    );
  }
  return page;
}

function sum(item, currency) {
  if (!item.price_per_hour) return "";
  if (item.kind === "launch") return [h("b", {}, price(item.price_per_hour)), h("small", {}, ` ${currency}/h`)];
  return [h("b", { class: "good" }, `−${price(item.price_per_hour)}`), h("small", {}, ` ${currency}/h`)];
}

/** In mode recommend: the sums of the page Recommended. */
function advised(found) {
  const saves = Number(found.saved) >= 0;
  const savesNow = Number(found.saving_per_hour) >= 0;
  return [
    figure(saves ? "Would have saved" : "Would have cost more", [money(Math.abs(found.saved)), h("small", {}, ` ${found.currency}`)], ["compared with actual spending · ", h("a", { href: "#/recommended" }, "Recommended")], "lead"),
    figure(savesNow ? "Would save now" : "Would cost more now", [price(Math.abs(found.saving_per_hour)), h("small", {}, ` ${found.currency}/h`)], "compared with the machines that run"),
    figure("Would have launched", number(found.counts.launch ?? 0), ["machines · ", h("a", { href: "#/decisions/launch" }, "list")]),
    figure("Would have deleted", number(found.counts.delete ?? 0), ["machines · ", h("a", { href: "#/decisions/delete" }, "list")]),
  ];
}

function figures(found) {
  if (found.is_advice) return advised(found);
  const count = (kind, title, note) => figure(title, number(found.counts[kind] ?? 0), [note, " · ", h("a", { href: `#/decisions/${kind}` }, "list")]);
  return [
    count("launch", "Launched", "machines"),
    count("drain", "Drained", "nodes"),
    count("delete", "Deleted", "machines"),
    count("move", "Moved", "pods"),
  ];
}
