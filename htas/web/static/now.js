// Now: the nodes and their cost. As cards, each node is filled by its pods and coloured by the reason that keeps it.

import { get } from "./api.js";
import { figure, folded, h, nameOf, nodeAt, nodeLink, podAt, podLink, settled, show } from "./dom.js";
import { nodeTable, none } from "./node-table.js";
import { counted, groupName, inWords, kindOf, length, number, percent, price, spoken } from "./words.js";

const PAGE = "#/now";
/** Up to so many nodes are drawn with their pods; beyond that each is a tile, and its pods are a click away. */
const WITH_PODS = 240;

/** Which view of the nodes the reader chose last. */
const VIEW = "htas-nodes";

/** A node's bar: each pod as wide as the greater of its shares. */
export function blocks(pods) {
  return pods.map((pod) =>
    h("span", { class: "block", "data-kind": pod.kind, title: `${pod.pod} · cpu ${percent(pod.cpu)}, memory ${percent(pod.memory)}`, style: { "--part": Math.max(pod.cpu, pod.memory, 0.004) } }),
  );
}

export function now() {
  const chosen = { why: "", text: "" };
  let view = localStorage.getItem(VIEW) === "table" ? "table" : "cards";
  const totals = h("div", { class: "totals brief" });
  const beside = h("div", { class: "beside" });
  const groups = h("div", { class: "groups" });
  const legend = h("div", { class: "chips", role: "group", "aria-label": "Nodes by the reason that keeps them" });
  const views = h("div", { class: "views", role: "group", "aria-label": "View of the nodes" });
  const table = nodeTable(chosen, PAGE);
  const colours = key();
  const found = h("p", { class: "note", role: "status" });
  let last = null;
  const search = h("input", {
    type: "search",
    placeholder: "Node or flavour",
    "aria-label": "Find nodes by name or flavour",
    oninput: settled(200, (event) => {
      chosen.text = event.target.value.trim();
      if (last) nodes(last);
    }),
  });
  const root = h(
    "div",
    { class: "page" },
    h("h1", { class: "unseen" }, "Now"),
    totals,
    beside,
    h("section", { "aria-labelledby": "nodes-title" }, h("div", { class: "tools" }, h("h2", { id: "nodes-title" }, "Nodes"), h("div", { class: "chips" }, views, search)), legend, colours, found, groups),
  );

  function choose(name) {
    view = name;
    localStorage.setItem(VIEW, name);
    if (last) nodes(last);
  }

  async function nodes(cluster) {
    show(views, ["cards", "table"].map((name) => h("button", { type: "button", class: "chip", "data-view": name, "aria-pressed": String(view === name), onclick: () => choose(name) }, name === "cards" ? "Cards" : "Table")));
    colours.hidden = view === "table" || cluster.totals.nodes > WITH_PODS;
    if (view === "table") {
      found.textContent = "";
      show(groups, await table.draw(cluster));
      return;
    }
    const pages =
      cluster.totals.nodes <= WITH_PODS ? (await get("/nodes", { limit: WITH_PODS, why: chosen.why, text: chosen.text })).items : null;
    const drawn = pages ? detailed(cluster, pages) : tiled(cluster, chosen);
    found.textContent = chosen.why || chosen.text ? `${counted(drawn.count, "node")} of ${number(cluster.totals.nodes)}` : "";
    const focus = document.activeElement?.dataset?.node;
    show(groups, drawn.sections);
    if (focus) groups.querySelector(`[data-node="${CSS.escape(focus)}"]`)?.focus();
  }

  return {
    root,
    places: ["find", "table", "cards"],
    /** #/now/find/TEXT: nodes and flavours of that name; #/now/table: the nodes as a table. */
    place(kind, text) {
      if (kind === "table" || kind === "cards") view = kind;
      if (kind !== "find") return;
      chosen.text = search.value = text;
      chosen.why = "";
    },
    async draw(cluster) {
      last = cluster;
      show(totals, figures(cluster));
      show(beside, around(cluster));
      show(
        legend,
        cluster.reasons.map((each) =>
          h(
            "button",
            {
              type: "button",
              class: "chip",
              "data-kind": kindOf(each.reason),
              "aria-pressed": String(chosen.why === each.reason),
              title: [each.meaning.says, each.meaning.remedy].filter(Boolean).join(" "),
              onclick: () => {
                chosen.why = chosen.why === each.reason ? "" : each.reason;
                this.draw(last);
              },
            },
            h("span", { class: "dot" }),
            h("span", {}, spoken(each.reason)),
            h("span", { class: "n" }, number(each.nodes)),
            h("span", { class: "n faint" }, each.reason === "NoPrice" ? "–" : `${price(each.price_per_hour)} ${cluster.currency}/h`),
          ),
        ),
      );
      await nodes(cluster);
    },
  };
}

/** What the colours within a bar mean. */
const key = () =>
  h("p", { class: "key" }, ["service", "batch", "daemon"].map((kind) => [h("span", { class: "swatch block", "data-kind": kind }), kind === "daemon" ? "DaemonSet " : `${kind} `]), h("span", { class: "swatch free" }), "free");

function figures(cluster) {
  const { totals, currency } = cluster;
  const cost = Number(totals.price_per_hour);
  const running = counted(totals.nodes, "node");
  return [
    h(
      "section",
      { class: "figure lead" },
      h("h2", {}, "Cost now"),
      h("p", { class: "value" }, price(cost), h("small", {}, ` ${currency}/h`)),
      between(cluster),
      unpriced(totals.unpriced),
    ),
    figure("Nodes", number(totals.nodes), [`${counted(cluster.coming.length, "machine")} ${cluster.acts ? "starting" : "would be launched"} · `, h("a", { href: "#/decisions/launch" }, "launches")]),
    figure("Running pods", number(totals.pods), [`on ${running} · `, h("a", { href: "#/money/owner" }, "cost by workload")]),
    figure("Pending pods", number(totals.waiting), totals.waiting ? [waitFor(cluster), cluster.waiting.length > 0 && [" · ", h("a", { href: podAt(cluster.waiting[0].such_as, PAGE) }, "why")]] : waitFor(cluster), totals.waiting ? "warn" : ""),
    figure("CPU requested", percent(totals.cpu), `memory ${percent(totals.memory)}`),
    figure("Idle", [price(totals.idle_per_hour), h("small", {}, ` ${currency}/h`)], ["not requested by any pod · ", h("a", { href: "#/money/namespace" }, "cost by namespace")]),
  ];
}

/** The part of the cost that is for nodes which a rule, a pod or a waiting time keeps. */
function between(cluster) {
  const held = new Map();
  for (const each of cluster.reasons) {
    const kind = kindOf(each.reason);
    if (kind !== "used" && Number(each.price_per_hour)) held.set(kind, (held.get(kind) ?? 0) + Number(each.price_per_hour));
  }
  const parts = [...held].sort((one, other) => other[1] - one[1]).map(([kind, amount]) => `${price(amount)} ${HOLDS[kind]}`);
  return h("p", {}, parts.length ? parts.join(", ") : "every node is well used", parts.length > 0 && [" · ", h("a", { href: "#/what-if" }, "What if")]);
}

const HOLDS = { time: "on nodes within a waiting time", held: "on nodes kept by pods or rules", leaving: "on nodes being drained", others: "on nodes HTAS does not manage", trouble: "on nodes with problems" };

/** Of the pending pods, how many have a node or a machine that starts, and how many have none. */
function waitFor({ totals, waiting, coming, acts }) {
  if (!totals.waiting) return "every pod has a node";
  const stuck = Math.min(totals.waiting, waiting.reduce((sum, each) => sum + each.pods, 0));
  const bought = Math.min(totals.waiting - stuck, coming.reduce((sum, each) => sum + each.pods, 0));
  const placed = totals.waiting - stuck - bought;
  const parts = [
    bought && (acts ? `${number(bought)} ${have(bought)} a machine starting` : `${number(bought)} would get a machine`),
    placed && (acts ? `${number(placed)} ${have(placed)} a node` : `${number(placed)} would get a node`),
    stuck && `${number(stuck)} ${have(stuck)} no place yet`,
  ];
  return parts.filter(Boolean).join(", ");
}

const have = (count) => (count === 1 ? "has" : "have");

/** The warning at a price that leaves nodes out. */
export const unpriced = (count) => (count ? h("p", { class: "warn" }, `${counted(count, "node")} without a price ${count === 1 ? "is" : "are"} not included`) : null);

function around(cluster) {
  const cards = [];
  if (cluster.problems.length) cards.push(card("Problems", cluster.problems.map((text) => h("li", { class: "trouble" }, text)), "problem"));
  if (cluster.waiting.length)
    cards.push(
      card(
        "Pending pods",
        cluster.waiting.map((each) =>
          h("li", {}, h("b", {}, number(each.pods)), " ", spoken(each.reason), h("span", { class: "note" }, ` ${each.meaning.says || each.message} `), h("a", { href: podAt(each.such_as, PAGE) }, each.pods > 1 ? `for example ${each.such_as.split("/")[1]}` : each.such_as.split("/")[1])),
        ),
        "reason",
      ),
    );
  if (cluster.coming.length)
    cards.push(
      card(
        cluster.acts ? "Starting" : "Would be launched",
        alike(cluster.coming).map((each) =>
          h("li", {}, h("b", {}, each.count > 1 ? `${each.count} × ${each.flavour}` : each.flavour), ` in ${each.group}${each.state === WOULD_BE_LAUNCHED ? "" : `, ${spoken(each.state)}`}`, h("span", { class: "note" }, ` ${each.pods ? `for ${counted(each.pods, "pending pod")}, ` : ""}${price(each.price_per_hour)} ${cluster.currency}/h${each.state === WOULD_BE_LAUNCHED ? "" : `, since ${length(cluster.at - each.since)}`}`)),
        ),
        "kind",
      ),
    );
  if (cluster.leaving.length || cluster.moves.length)
    cards.push(
      card("Drains and moves", [
        ...cluster.leaving.map((each) => h("li", {}, nodeLink(each.node, PAGE), h("span", { class: "note" }, ` ${inWords(each.reason)}, ${counted(each.pods, "pod")} left`))),
        ...cluster.moves.map((each) => h("li", {}, podLink(each.pod, PAGE), h("span", { class: "note" }, ` to ${each.target} by ${each.method}`))),
      ], "other"),
    );
  if (cards.length) return cards;
  const { waiting } = cluster.totals;
  const pending = waiting ? `${counted(waiting, "pod")} pending: ${waitFor(cluster)}.` : "No pod is pending.";
  return h("p", { class: "quiet-line" }, pending, cluster.acts ? " No machine is starting, and no node is being drained." : " No machine would be launched.");
}

/** The state of a machine that is planned where nothing is carried out. */
const WOULD_BE_LAUNCHED = "WouldBeLaunched";

/** Machines on their way that are alike, together: their prices and pods added up, since the oldest. */
function alike(coming) {
  const found = new Map();
  for (const each of coming) {
    const key = [each.flavour, each.group, each.state].join("\n");
    const known = found.get(key);
    if (!known) found.set(key, { ...each, price_per_hour: Number(each.price_per_hour), count: 1 });
    else Object.assign(known, { count: known.count + 1, pods: known.pods + each.pods, price_per_hour: known.price_per_hour + Number(each.price_per_hour), since: Math.min(known.since, each.since) });
  }
  return [...found.values()];
}

const card = (title, items, what) => h("section", { class: "card" }, h("h2", {}, title), folded("", items, { most: 6, what }));

function header(group, currency) {
  const limit = group.most_nodes ? ` of at most ${number(group.most_nodes)}` : "";
  return h(
    "header",
    {},
    h("h3", {}, groupName(group.name)),
    h("p", {}, `${number(group.nodes)} ${group.nodes === 1 ? "node" : "nodes"}${limit} · ${counted(group.pods, "pod")}`),
    h("p", { class: "gauges" }, gauge("cpu", group.cpu), gauge("memory", group.memory)),
    h("p", { class: "price" }, h("a", { href: "#/money/group", title: "Spend by node group" }, `${price(group.price_per_hour)} ${currency}/h`)),
  );
}

const gauge = (name, share) =>
  h("span", { class: "gauge" }, h("span", {}, name), h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: { "--part": Math.min(1, share) } })), h("span", { class: "n" }, percent(share)));

function section(group, currency, body) {
  return h("section", { class: "group" }, header(group, currency), body);
}

function detailed(cluster, items) {
  const of = Map.groupBy ? Map.groupBy(items, (each) => each.node.group || "(none)") : groupBy(items);
  const sections = cluster.groups
    .filter((group) => of.has(group.name) || group.nodes === 0)
    .map((group) =>
      section(
        group,
        cluster.currency,
        of.has(group.name)
          ? h("ul", { class: "bars" }, of.get(group.name).map((each) => h("li", {}, bar(each, cluster.currency))))
          : h("p", { class: "quiet-line" }, cluster.totals.waiting ? "No nodes now." : "No nodes now: none are needed."),
      ),
    );
  const isEmpty = !sections.length || (!items.length && cluster.totals.nodes > 0);
  return { sections: isEmpty ? none(cluster) : sections, count: items.length };
}

function groupBy(items) {
  const found = new Map();
  for (const each of items) found.set(each.node.group || "(none)", [...(found.get(each.node.group || "(none)") ?? []), each]);
  return found;
}

function bar({ node, why, message, blocks: pods }, currency) {
  const told = `${node.node}: ${percent(node.cpu)} of CPU, ${percent(node.memory)} of memory, ${counted(node.pods, "pod")}, ${spoken(why)}`;
  return h(
    "a",
    { class: "node", href: nodeAt(node.node, PAGE), "data-node": node.node, "data-kind": kindOf(why), "aria-label": told, title: message },
    h("span", { class: "line" }, h("b", {}, nameOf(node.node))),
    h("span", { class: "fill" }, blocks(pods)),
    h("span", { class: "line small" }, h("span", { class: "why" }, spoken(why)), h("span", { class: "n" }, length(node.age_s))),
    h("span", { class: "line small" }, h("span", { class: "flavour" }, [node.flavour, node.zone].filter(Boolean).join(" · ")), h("span", { class: "n" }, node.price_per_hour ? `${price(node.price_per_hour)} ${currency}/h` : "no price")),
  );
}

/** Thousands of nodes: a tile each, as high as it is full; arrow keys go from tile to tile. */
function tiled(cluster, chosen) {
  const { nodes } = cluster;
  const of = cluster.groups.map(() => []);
  let count = 0;
  for (let i = 0; i < nodes.name.length; i++) {
    const why = cluster.reasons[nodes.why[i]].reason;
    const flavour = cluster.flavours[nodes.flavour[i]];
    if (chosen.why && why !== chosen.why) continue;
    if (chosen.text && !nodes.name[i].includes(chosen.text) && !flavour.includes(chosen.text)) continue;
    count += 1;
    const fullness = Math.min(1, Math.max(nodes.cpu[i], nodes.memory[i]) / 1000);
    of[nodes.group[i]].push(
      h("a", {
        class: "tile",
        href: nodeAt(nodes.name[i], PAGE),
        tabindex: of[nodes.group[i]].length ? "-1" : "0",
        "data-node": nodes.name[i],
        "data-kind": kindOf(why),
        "aria-label": `${nodes.name[i]}, ${flavour}, ${Math.round(fullness * 100)} %, ${counted(nodes.pods[i], "pod")}, ${spoken(why)}`,
        title: `${nodes.name[i]} · ${flavour} · ${Math.round(fullness * 100)} % · ${spoken(why)}`,
        style: { "--part": fullness },
      }),
    );
  }
  const sections = cluster.groups
    .map((group, i) => of[i].length && section(group, cluster.currency, h("div", { class: "tiles", onkeydown: walk }, of[i])))
    .filter(Boolean);
  return { sections: sections.length ? sections : none(cluster), count };
}

function walk(event) {
  const steps = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" };
  const next = document.activeElement[steps[event.key]];
  if (!next) return;
  event.preventDefault();
  document.activeElement.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
