// The nodes as a table: sorted by any column, a page at a time, saved as CSV.

import { get } from "./api.js";
import { csvButton, h, nodeAt } from "./dom.js";
import { counted, kindOf, length, number, percent, price, spoken } from "./words.js";

/** The API sends so many nodes at once. */
const PAGE_OF = 100;
const MOST = 500;
const COLUMNS = [
  { by: "name", title: "Node" },
  { by: "group", title: "Group" },
  { by: "flavour", title: "Flavour" },
  { by: "zone", title: "Zone" },
  { by: "cpu", title: "CPU", isFigure: true },
  { by: "memory", title: "Memory", isFigure: true },
  { by: "pods", title: "Pods", isFigure: true },
  { by: "age", title: "Age", isFigure: true },
  { by: "price", title: "Price", isFigure: true },
  { by: "why", title: "Reason" },
];
const CSV = ["node", "group", "flavour", "zone", "cpu", "memory", "pods", "created", "age_s", "price_per_hour", "state"];

/** Why no node is shown. */
export const none = (cluster) => h("p", { class: "empty" }, cluster.totals.nodes ? "No node matches the search and the chosen reason." : cluster.acts ? "The cluster has no nodes. HTAS launches machines when pods are pending." : "The cluster has no nodes.");

/** `chosen` is what the page filters by, and may change between two calls of `draw`. */
export function nodeTable(chosen, page) {
  const order = { sort: "name", reverse: false };
  let most = PAGE_OF;
  let last = null;
  const box = h("div", { class: "card nodes" });

  const asked = () => ({ why: chosen.why, text: chosen.text, sort: order.sort, reverse: order.reverse || "" });

  /** Nodes from the first one on, in pages as large as the API sends them. */
  async function nodes(count) {
    const items = [];
    let found;
    do {
      found = await get("/nodes", { ...asked(), limit: Math.min(MOST, count - items.length), offset: items.length || "" });
      items.push(...found.items);
    } while (found.next !== null && items.length < count);
    return { items, total: found.total };
  }

  async function again(focus) {
    await draw(last);
    box.querySelector(focus)?.focus();
  }

  /** A column of figures begins with its largest. */
  function sortBy(column) {
    order.reverse = order.sort === column.by ? !order.reverse : Boolean(column.isFigure);
    order.sort = column.by;
    again(`[data-by="${column.by}"]`);
  }

  function head(column, currency) {
    const isChosen = order.sort === column.by;
    const title = column.by === "price" ? `${column.title}, ${currency}/h` : column.title;
    return h(
      "th",
      { scope: "col", class: column.isFigure && "n", "aria-sort": isChosen ? (order.reverse ? "descending" : "ascending") : null },
      h("button", { type: "button", class: "text sort", "data-by": column.by, onclick: () => sortBy(column) }, title, h("span", { "aria-hidden": "true" }, isChosen ? (order.reverse ? " ↓" : " ↑") : "")),
    );
  }

  const row = ({ node, why, message }) =>
    h(
      "tr",
      { "data-kind": kindOf(why) },
      h("th", { scope: "row" }, h("a", { href: nodeAt(node.node, page), "data-node": node.node }, node.node)),
      h("td", {}, node.group || "none"),
      h("td", {}, node.flavour || "–"),
      h("td", {}, node.zone || "–"),
      h("td", { class: "n" }, percent(node.cpu)),
      h("td", { class: "n" }, percent(node.memory)),
      h("td", { class: "n" }, number(node.pods)),
      h("td", { class: "n", title: node.created }, length(node.age_s)),
      h("td", { class: "n" }, node.price_per_hour ? price(node.price_per_hour) : "–"),
      h("td", { title: message }, h("span", { class: "dot" }), ` ${spoken(why)}`),
    );

  const exported = async () => (await nodes(Infinity)).items.map((item) => [...CSV.map((name) => item.node[name]), item.why, item.message]);

  async function draw(cluster) {
    last = cluster;
    const found = await nodes(most);
    if (!found.items.length) return none(cluster);
    const focus = document.activeElement?.dataset?.node;
    const left = found.total - found.items.length;
    box.replaceChildren(
      h("div", { class: "tools" }, h("p", { class: "note", role: "status" }, left || found.total < cluster.totals.nodes ? `${counted(found.total, "node")} of ${number(cluster.totals.nodes)}` : counted(found.total, "node")), csvButton("nodes", [...CSV, "reason", "message"], exported)),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of nodes" }, h("table", { class: "list" }, h("thead", {}, h("tr", {}, COLUMNS.map((column) => head(column, cluster.currency)))), h("tbody", {}, found.items.map(row)))),
      ...(left > 0 ? [h("button", { type: "button", class: "quiet more", onclick: () => { most += MOST; again(".more"); } }, `Show more (${number(left)} left)`)] : []),
    );
    if (focus) box.querySelector(`[data-node="${CSS.escape(focus)}"]`)?.focus();
    return box;
  }

  return { draw };
}
