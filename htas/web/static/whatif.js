// What if: rules lifted, prices changed, flavours added, services grown; the planner itself answers.

import { get, post, Refused } from "./api.js";
import { ranked } from "./chart.js";
import { folded, h, podAt, settled, show } from "./dom.js";
import { unpriced } from "./now.js";
import { bytes, cores, counted, money, number, price, spoken } from "./words.js";
import { changeOf, mark, MOST_REPLICAS, wrongFlavour, wrongReplicas } from "./whatif-fields.js";

const moving = (pods) => (pods ? `${counted(pods, "pod")} ${pods === 1 ? "moves" : "move"}` : "");
const MIXES = 16;
/** How often a question is asked again by itself, and how long that may take each time; then a button does it. */
const MOST_AGAIN = 6;
const LONGEST_AGAIN_S = 60;
const empty = () => ({ lift: [], prices: {}, flavours: [], replicas: {} });

export function whatIf() {
  let change = empty();
  let asIs = null;
  let levers = null;
  let shown = 0;
  const wrong = new Map(); // fields that are asked about no further, with why
  const controls = h("div", { class: "levers" });
  const glance = h("p", { class: "glance", "aria-hidden": "true" });
  const result = h("div", { class: "result", role: "status", "aria-live": "polite" });
  const root = h(
    "div",
    { class: "page" },
    h("div", { class: "tools" }, h("h1", {}, "What if"), h("button", { type: "button", class: "quiet", onclick: () => { change = empty(); wrong.clear(); draw(); } }, "Start over")),
    h("p", { class: "intro" }, "Change something, and the planner computes the cost and the machines. Nothing is carried out."),
    glance,
    h("div", { class: "halves wide" }, controls, result),
  );

  const ask = settled(200, () => {
    remember();
    answerTo(++shown, 0);
  });

  /** The address has what is asked: a reload keeps it, and it can be sent to somebody. */
  function remember() {
    if (!root.isConnected || !/^#\/what-if(\/with\/|$)/.test(location.hash)) return; // a pod stands there, opened beside
    history.replaceState(null, "", isChanged() ? `#/what-if/with/${encodeURIComponent(JSON.stringify(change))}` : "#/what-if");
  }

  /** Asks for what is changed now. While others are at it the server says when to come back, and that is done. */
  async function answerTo(mine, times) {
    if (wrong.size) {
      refuse([...wrong].map(([key, why]) => `${key}: ${why}`));
      return;
    }
    result.setAttribute("aria-busy", "true");
    try {
      const answer = isChanged() ? await post("/simulate", change) : asIs;
      if (mine !== shown) return;
      mark(controls, []);
      show(result, told(answer));
    } catch (error) {
      if (mine !== shown) return;
      if (error instanceof Refused && error.status === 503) comeBack(mine, times, error);
      else refuse(error.message.split("\n"));
    } finally {
      if (mine === shown) result.removeAttribute("aria-busy");
    }
  }

  function comeBack(mine, times, error) {
    const after = Math.min(LONGEST_AGAIN_S, Math.max(1, error.again ?? 5));
    if (times >= MOST_AGAIN) {
      complain("The planner is busy", error.message, h("button", { type: "button", class: "main", onclick: ask }, "Ask again"));
      return;
    }
    complain("The planner is busy", `Trying again in ${after} s.`);
    setTimeout(() => mine === shown && root.isConnected && answerTo(mine, times + 1), after * 1000);
  }

  /** All that is wrong with the change, here and at the rows that it is of. */
  function refuse(faults) {
    mark(controls, faults);
    complain("Invalid change", "", h("ul", {}, faults.map((each) => h("li", {}, each))));
    result.removeAttribute("aria-busy");
  }

  function complain(title, message, more = null) {
    show(glance, h("span", {}, title));
    show(result, h("section", { class: "card" }, h("h2", {}, title), message && h("p", {}, message), more));
  }

  const isChanged = () => change.lift.length || change.flavours.length || Object.keys(change.prices).length || Object.keys(change.replicas).length;

  /** Whether prices were raised, and nothing else was changed. */
  const onlyRaised = () => {
    const before = new Map(levers.flavours.map((each) => [each.name, Number(each.price_per_hour)]));
    const prices = Object.entries(change.prices);
    return prices.length > 0 && prices.every(([name, price]) => Number(price) >= before.get(name)) && !change.lift.length && !change.flavours.length && !Object.keys(change.replicas).length;
  };

  function draw() {
    show(controls, rules(), services(), flavours());
    ask();
  }

  function rules() {
    return h(
      "section",
      { class: "card" },
      h("h2", {}, "Lift a rule"),
      h("p", { class: "note" }, "These rules keep pods, and so their nodes, where they are."),
      folded(
        "switches",
        asIs.rules.map((rule) =>
          h(
            "li",
            {},
            h(
              "label",
              {},
              h("input", { type: "checkbox", checked: change.lift.includes(rule.rule), onchange: (event) => { change.lift = event.target.checked ? [...change.lift, rule.rule] : change.lift.filter((name) => name !== rule.rule); ask(); } }),
              h("span", {}, h("b", {}, spoken(rule.rule)), rule.pods ? ` holds ${counted(rule.pods, "pod")} on ${counted(rule.nodes, "node")}` : ": limits how much is drained", h("small", {}, `To lift it: ${rule.remedy}`)),
            ),
            rule.such_as && h("a", { class: "such", href: podAt(rule.such_as, "#/what-if") }, `for example ${rule.such_as.split("/")[1]}`),
          ),
        ),
        { most: 8, what: "rule" },
      ),
    );
  }

  function services() {
    const rows = levers.services.map((service) => {
      const id = `replicas-${service.name.replace(/\W/g, "-")}`;
      const field = h("input", { type: "number", id, min: 0, max: MOST_REPLICAS, step: 1, value: change.replicas[service.name] ?? service.replicas, oninput: () => set(field.value) });
      const set = (value) => {
        const why = wrongReplicas(field);
        if (why) wrong.set(`replicas.${service.name}`, why);
        else wrong.delete(`replicas.${service.name}`);
        if (why || value === "" || Number(value) === service.replicas) delete change.replicas[service.name];
        else change.replicas[service.name] = Number(value);
        ask();
      };
      return h(
        "li",
        { "data-key": `replicas.${service.name}` },
        h("label", { for: id }, h("b", {}, service.name.split("/").at(-1)), h("small", {}, `${service.name.split("/").slice(0, 2).join(" · ")}, each ${cores(service.cpu_m)}, ${bytes(service.memory_bytes)}`)),
        field,
        h("button", { type: "button", class: "quiet", onclick: () => { field.value = Math.min(MOST_REPLICAS, service.replicas * 10); set(field.value); }, "aria-label": `Ten times ${service.name}` }, "× 10"),
      );
    });
    return h("section", { class: "card" }, h("h2", {}, "Grow a service"), rows.length ? folded("fields", rows, { most: 12, what: "service" }) : h("p", { class: "note" }, "No service runs now."));
  }

  function flavours() {
    const rows = levers.flavours.map((flavour) => {
      const id = `price-${flavour.name.replace(/\W/g, "-")}`;
      return h(
        "li",
        { "data-key": `prices.${flavour.name}` },
        h("label", { for: id }, h("b", {}, flavour.name), h("small", {}, `${cores(flavour.cpu_m)}, ${bytes(flavour.memory_bytes)}${flavour.nodes ? ` · ${counted(flavour.nodes, "node")} now` : ""}`)),
        h("input", { type: "text", inputmode: "decimal", id, value: change.prices[flavour.name] ?? flavour.price_per_hour, oninput: (event) => { const value = event.target.value.trim(); if (!value || value === flavour.price_per_hour) delete change.prices[flavour.name]; else change.prices[flavour.name] = value; ask(); } }),
        h("span", { class: "faint" }, `${asIs.currency}/h`),
      );
    });
    const added = change.flavours.map((flavour) =>
      h("li", { class: "added", "data-key": `flavours.${flavour.name}` }, h("span", {}, h("b", {}, flavour.name), h("small", {}, `${flavour.cpu} cores, ${flavour.memory}, ${flavour.price} ${asIs.currency}/h`)), h("button", { type: "button", class: "quiet", onclick: () => { change.flavours = change.flavours.filter((each) => each !== flavour); draw(); } }, "Remove")),
    );
    const fields = { name: "big", cpu: "16", memory: "64Gi", price: "0.80" };
    const inputs = Object.entries(fields).map(([name, value]) => h("label", {}, h("span", {}, name), h("input", { name, placeholder: value, required: true, pattern: ".*\\S.*", size: 6 })));
    const typed = Object.fromEntries(inputs.map((label) => label.querySelector("input")).map((input) => [input.name, input]));
    for (const input of Object.values(typed)) input.addEventListener("input", () => input.setCustomValidity(""));
    const add = (flavour) => {
      const faults = wrongFlavour(flavour, [...levers.flavours, ...change.flavours].map((each) => each.name));
      for (const [name, input] of Object.entries(typed)) input.setCustomValidity(faults[name] ?? "");
      if (!form.reportValidity()) return;
      change.flavours = [...change.flavours, Object.fromEntries(Object.entries(flavour).map(([key, value]) => [key, value.trim()]))];
      draw();
    };
    const form = h(
      "form",
      { class: "adding", novalidate: true, onsubmit: (event) => { event.preventDefault(); add(Object.fromEntries(new FormData(event.target))); } },
      inputs,
      h("button", { class: "quiet" }, "Add"),
    );
    return h("section", { class: "card" }, h("h2", {}, "Change a price"), folded("fields", rows, { most: 12, what: "flavour" }), h("h3", {}, "Add a flavour"), h("ul", { class: "fields" }, added), form);
  }

  function told(answer) {
    const costOf = (mix) => Number(mix.price_per_hour);
    const base = answer.as_is ?? answer; // of the same moment: the cluster goes on while somebody tries things out
    const before = costOf(base.now);
    const bought = Object.entries(answer.bought).map(([name, count]) => `${count} × ${name}`).join(", ");
    const rows = [
      { name: answer.counts_bought && Object.keys(asIs.bought).length ? "As it is, with pending pods" : "As it is", href: "#/now", value: before, kind: "mine" },
      ...(isChanged() && costOf(answer.now) !== before ? [{ name: "With the change", value: costOf(answer.now), kind: "mine" }] : []),
      { name: "Packed onto fewer nodes", value: costOf(answer.packed), under: moving(answer.packed.moves) },
      { name: "Cheapest mix found", value: costOf(answer.best), under: moving(answer.best.moves) },
      ...(answer.least_is_reachable ? [{ name: "Lower bound", under: "no mix costs less; it may be unreachable", value: Number(answer.least_per_hour), kind: "floor" }] : []),
    ];
    const best = costOf(answer.best);
    const known = costOf(base.best);
    const delta = best - known;
    const verdict = isChanged() ? "Cheapest with the change" : "Cheapest for what runs now";
    show(glance, h("span", {}, verdict), h("b", { class: "n" }, `${price(best)} ${answer.currency}/h`), isChanged() && Math.abs(delta) >= 1e-9 ? h("b", { class: `n ${delta < 0 ? "good" : "bad"}` }, `${delta < 0 ? "−" : "+"}${price(Math.abs(delta))}`) : null);
    return [
      h(
        "section",
        { class: "card verdict" },
        h("h2", {}, verdict),
        h("p", { class: "value" }, price(best), h("small", {}, ` ${answer.currency}/h`)),
        h("p", {}, isChanged() ? (Math.abs(delta) < 1e-9 ? "as cheap as without the change" : [h("b", { class: delta < 0 ? "good" : "bad" }, `${price(Math.abs(delta))} ${delta < 0 ? "less" : "more"}`), ` an hour than the best without it (${price(known)}), ${money(Math.abs(delta) * 730)} a month`]) : `${answer.headline}.`),
        onlyRaised() && delta < -1e-9 && h("p", { class: "note" }, "Higher prices make nothing cheaper. The search is not exhaustive and found these machines only now; at today's prices they cost even less."),
        unpriced(answer.unpriced),
        answer.lacking ? h("p", { class: "note" }, `${answer.lacking}.`) : null,
        ranked(rows, { of: Math.max(...rows.map((row) => row.value)), format: price, caption: "Cost per hour" }),
        answer.why_waiting.map((each) => h("p", { class: "warn" }, `Would be pending: ${counted(each.pods, "pod")} (${spoken(each.reason)}): ${each.message}.`, each.remedy && h("small", {}, ` To change it: ${each.remedy}`))),
        bought && h("p", { class: "note" }, answer.counts_bought ? `Launched for pending pods: ${bought}` : `Not in these figures: ${bought}, launched for pending pods`),
      ),
      h("section", { class: "card" }, h("h2", {}, "Machines"), placement(answer)),
    ];
  }

  function placement(answer) {
    const now = (answer.as_is ?? answer).now;
    const all = [...new Set([...Object.keys(now.flavours), ...Object.keys(answer.best.flavours)])].sort();
    const weight = (name) => Math.max(now.flavours[name] ?? 0, answer.best.flavours[name] ?? 0);
    const names = all.length <= MIXES ? all : [...all].sort((a, b) => weight(b) - weight(a)).slice(0, MIXES).sort();
    const most = Math.max(...names.map((name) => Math.max(now.flavours[name] ?? 0, answer.best.flavours[name] ?? 0)), 1);
    const cell = (count, kind) => h("td", { class: "rod" }, count > 0 && h("span", { class: kind, style: { "--part": count / most } }), h("i", { class: "n" }, number(count)));
    const left = all.length - names.length;
    return [h(
      "table",
      { class: "mixes" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Flavour"), h("th", { scope: "col" }, "now"), h("th", { scope: "col" }, isChanged() ? "with the change" : "cheapest found"))),
      h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), cell(now.flavours[name] ?? 0, "mine"), cell(answer.best.flavours[name] ?? 0, ""))), h("tr", { class: "all" }, h("th", { scope: "row" }, "all"), h("td", { class: "n" }, number(now.nodes)), h("td", { class: "n" }, number(answer.best.nodes)))),
    ), left > 0 && h("p", { class: "note" }, `and ${counted(left, "flavour")} with fewer machines`)];
  }

  return {
    root,
    places: ["with"],
    place(kind, rest) {
      if (kind === "with") {
        if (rest === JSON.stringify(change)) return;
        change = changeOf(rest);
        wrong.clear();
        if (levers) draw();
      } else if (!kind && levers) remember();
    },
    async draw() {
      if (levers) return; // while somebody tries things out, what they are compared with stays as it was
      show(result, h("p", { class: "note" }, "Computing …"));
      levers = await get("/what-if");
      asIs = levers.as_is;
      draw();
    },
  };
}
