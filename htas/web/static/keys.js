// The keyboard: / searches, ? lists the keys, arrows go from item to item, digits choose a page.

import { h, show } from "./dom.js";

const KEYS = [
  ["/", "Search on this page"],
  ["1 … 6", "Open a page, in the order of the menu"],
  ["← → ↑ ↓", "Go to the next node, row or decision, once one has the focus"],
  ["Enter", "Open it"],
  ["Esc", "Close the details, or leave the search"],
  ["?", "Show these keys"],
];
/** What the arrows go through: nodes as cards, rows of tables, decisions. Tiles have arrows of their own. */
const ITEMS = "a.node, .nodes tbody th a, .timeline a.subject";
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const help = document.getElementById("help");

const isTyping = (at) => at?.matches?.("input:not([type=checkbox]), textarea, select");

export function showHelp() {
  show(
    help,
    h("header", {}, h("h2", { id: "help-title" }, "Keyboard"), h("button", { type: "button", class: "quiet close", onclick: () => help.close(), "aria-label": "Close" }, "×")),
    h("dl", { class: "keys" }, KEYS.map(([key, says]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, says)))),
  );
  if (!help.open) help.showModal();
}

/** The item in a direction: beside it in the order of the page, or the nearest in the row below or above. */
function next(from, [across, down]) {
  const items = [...document.querySelectorAll(ITEMS)].filter((item) => item.offsetParent !== null);
  if (across) return items[items.indexOf(from) + across];
  const here = from.getBoundingClientRect();
  let best = null;
  let least = Infinity;
  for (const item of items) {
    const there = item.getBoundingClientRect();
    const rows = (there.top - here.top) * down;
    if (rows < 2) continue;
    const away = rows * 10 + Math.abs(there.left - here.left);
    if (away < least) [best, least] = [item, away];
  }
  return best;
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const at = document.activeElement;
  if (event.key === "Escape" && at?.matches("main input[type=search]")) at.blur();
  if (isTyping(at) || document.querySelector("dialog[open]") || document.querySelector(".login")) return;
  if (event.key === "?") showHelp();
  else if (event.key === "/") document.querySelector("main input[type=search]")?.focus();
  else if (/^[1-9]$/.test(event.key)) [...document.querySelectorAll("#pages a")].filter((link) => !link.hidden)[Number(event.key) - 1]?.click();
  else if (event.key in ARROWS && at?.matches(ITEMS)) next(at, ARROWS[event.key])?.focus();
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", pressed);
document.getElementById("keys").addEventListener("click", showHelp);
help.addEventListener("click", (event) => event.target === help && help.close());
