// Decisions: what was bought, emptied, moved and preempted, why, and what it saved; each can be planned again.

import { get } from "./api.js";
import { figure, h, settled, show } from "./dom.js";
import { counted, day, money, number, seconds } from "./words.js";

const NAMES = { buy: "bought", empty: "emptied", release: "returned", move: "moved", preempt: "preempted", evict: "evicted", rearrange: "rearranged", undo: "undone", adopt: "adopted" };

/** What was done, or with HTAS would have been. */
const named = (kind, isAdvice) => (isAdvice ? `would be ${NAMES[kind]}` : NAMES[kind]);

/** So many in a row that one cycle decided alike are told as one, and the others on request. */
const FOLDED = 3;
const SAME = ["cycle", "kind", "status", "flavour", "why", "group", "price_per_hour"];

/** Decisions in their order, those in a row that differ in their subject alone together. */
function alike(items) {
  const found = [];
  for (const item of items) {
    const before = found.at(-1)?.[0];
    if (before && SAME.every((name) => before[name] === item[name])) found.at(-1).push(item);
    else found.push([item]);
  }
  return found;
}

export function decisions(again) {
  const chosen = { kind: "", text: "" };
  let more = 100;
  const totals = h("div", { class: "totals" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Kinds of decisions" });
  const list = h("div", { class: "timeline" });
  const opened = new Map();
  const unfolded = new Set();
  const search = h("input", { type: "search", placeholder: "Machine, pod or reason", "aria-label": "Find decisions", oninput: settled(200, (event) => { chosen.text = event.target.value.trim(); again(); }) });
  const root = h("div", { class: "page" }, h("div", { class: "tools" }, h("h1", {}, "Decisions"), search), totals, chips, list);

  const page = {
    root,
    places: [...Object.keys(NAMES), "all"],
    /** #/decisions/buy, and #/decisions/all/TEXT: those of a kind, or about somebody. */
    place(kind, text) {
      if (!page.places.includes(kind)) return;
      chosen.kind = kind === "all" ? "" : kind;
      chosen.text = search.value = text;
    },
    async draw() {
      const found = await get("/decisions", { ...chosen, limit: Math.min(500, more) });
      show(totals, figures(found));
      const kinds = Object.keys(NAMES).filter((kind) => found.counts[kind]);
      show(
        chips,
        kinds.map((kind) =>
          h("button", { type: "button", class: "chip", "data-verb": kind, "aria-pressed": String(chosen.kind === kind), onclick: () => { chosen.kind = chosen.kind === kind ? "" : kind; again(); } }, h("span", { class: "dot" }), named(kind, found.is_advice), h("span", { class: "n faint" }, number(found.counts[kind]))),
        ),
      );
      const focus = document.activeElement?.dataset?.number;
      show(list, found.items.length ? days(found) : h("p", { class: "empty" }, kinds.length ? "Nothing of that kind." : found.is_advice ? "Nothing would have been done yet: no machine would be bought and none returned." : "Nothing was decided yet: no machine was bought and none returned."));
      if (found.before !== null && more < 500) list.append(h("button", { type: "button", class: "main", onclick: () => { more += 200; again(); } }, "Show older ones"));
      if (focus) list.querySelector(`[data-number="${focus}"]`)?.focus();
    },
  };

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

  /** In the place of rows like the one before; a click shows them, for as long as the page is open. */
  function fold(item, rows, isAdvice) {
    const line = h("li", { class: "fold" }, h("button", { type: "button", class: "quiet", onclick: () => { unfolded.add(item.number); line.replaceWith(...rows); rows[0].querySelector("a")?.focus(); } }, `${number(rows.length)} more ${named(item.kind, isAdvice)} alike`));
    return line;
  }

  function row(item, currency) {
    const answer = h("div", { class: "again", role: "status" });
    const tell = (replayed) => show(answer, replayed.differences.length ? [h("p", {}, `By today's policy ${counted(replayed.differences.length, "thing")} would be different:`), h("ol", { class: "lines" }, replayed.differences.slice(0, 20).map((line) => h("li", {}, line)))] : h("p", { class: "same" }, "The same plan again, by today's policy."));
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
        h("p", {}, h("b", {}, item.status === "done" ? NAMES[item.kind] : item.status === "recommended" ? `would be ${NAMES[item.kind]}` : `${item.kind}: ${item.status}`), " ", item.flavour && `${item.flavour} `, h("a", { class: "subject", href: `#/decisions/all/${encodeURIComponent(item.subject)}`, title: "All that was decided about it" }, item.subject)),
        item.why && h("p", { class: "note" }, item.why, item.group && ` · group ${item.group}`),
        answer,
      ),
      h("p", { class: "sum n" }, sum(item, currency)),
      item.cycle !== null ? h("button", { type: "button", class: "quiet", "data-number": item.number, onclick: replay, title: `Plan cycle ${item.cycle} again, by today's policy`, "aria-label": `Plan cycle ${item.cycle} again` }, "Plan again") : h("span", {}),
    );
  }
  return page;
}

function sum(item, currency) {
  if (!item.price_per_hour) return "";
  if (item.kind === "buy") return [h("b", {}, money(item.price_per_hour)), h("small", {}, ` ${currency}/h`)];
  return [h("b", { class: "good" }, `−${money(item.price_per_hour)}`), h("small", {}, ` ${currency}/h`), item.saved && h("small", { class: "seen" }, `${money(item.saved)} ${item.status === "recommended" ? "would be saved" : "saved"}${item.is_saving ? " so far" : ", then bought again"}`)];
}

/** Where HTAS looks on: the sums of Recommended, and what would have been done. */
function advised(found) {
  const saves = Number(found.saved) >= 0;
  const savesNow = Number(found.saving_per_hour) >= 0;
  const since = found.begins ? `since ${day(found.begins)} ${seconds(found.begins)}` : "machines";
  return [
    figure(saves ? "Would have saved" : "Would have cost more", [money(Math.abs(found.saved)), h("small", {}, ` ${found.currency}`)], ["beside what was really spent · ", h("a", { href: "#/recommended" }, "of what")], "lead"),
    figure(savesNow ? "Would save now" : "Would cost more now", [money(Math.abs(found.saving_per_hour)), h("small", {}, ` ${found.currency}/h`)], ["beside the machines that run · ", h("a", { href: "#/recommended" }, "which")]),
    figure("Would have bought", number(found.counts.buy ?? 0), [`${since} · `, h("a", { href: "#/decisions/buy" }, "which")]),
    figure("Would have returned", number(found.counts.release ?? 0), [`${since} · `, h("a", { href: "#/decisions/release" }, "which")]),
  ];
}

function figures(found) {
  if (found.is_advice) return advised(found);
  return [
    figure("Saved by emptying nodes", [money(found.saved), h("small", {}, ` ${found.currency}`)], ["each until its group bought again a machine of its price · ", h("a", { href: "#/money" }, "of what")], "lead"),
    figure("Saving now", [money(found.saving_per_hour), h("small", {}, ` ${found.currency}/h`)], ["of machines that were not needed again · ", h("a", { href: "#/decisions/empty" }, "which")]),
    figure("Bought", number(found.counts.buy ?? 0), ["machines asked for · ", h("a", { href: "#/decisions/buy" }, "which")]),
    figure("Returned", number(found.counts.release ?? 0), [found.begins ? `since ${day(found.begins)} ${seconds(found.begins)}` : "machines", " · ", h("a", { href: "#/decisions/release" }, "which")]),
  ];
}
