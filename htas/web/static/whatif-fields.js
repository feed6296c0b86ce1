// What somebody types into What if: refused at the field where it cannot be meant, and told at the row that it is of.

import { h } from "./dom.js";

/** As the API has it: a plan for more pods takes too long. */
export const MOST_REPLICAS = 20000;
const MOST_CORES = 10000;
const MOST_MEMORY = 2 ** 50;
const DEAREST = 1e6;
const UNITS = { "": 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

/** A quantity as Kubernetes writes it, as a number; NaN: it is none. */
function amount(text) {
  const found = /^(\d+(?:\.\d+)?)([a-zA-Z]{0,2})$/.exec(text.trim());
  return found && found[2] in UNITS ? Number(found[1]) * UNITS[found[2]] : NaN;
}

/** Why a field has no number of replicas; empty: it has, or is empty. */
export function wrongReplicas(field) {
  if (field.value === "" && !field.validity.badInput) return "";
  return /^\d+$/.test(field.value) && Number(field.value) <= MOST_REPLICAS ? "" : `takes a whole number from 0 to ${MOST_REPLICAS.toLocaleString("en")}`;
}

/** What is wrong with a flavour that is to be added, by field. */
export function wrongFlavour({ name, cpu, memory, price }, known) {
  const faults = {};
  if (!name.trim()) faults.name = "Name it";
  else if (known.includes(name.trim())) faults.name = `There is a flavour ${name.trim()} already: change its price, or name another`;
  if (!(amount(cpu) >= 0.001 && amount(cpu) <= MOST_CORES)) faults.cpu = `Cores, such as 8 or 500m; at most ${MOST_CORES.toLocaleString("en")}`;
  if (!(amount(memory) >= 1 && amount(memory) <= MOST_MEMORY)) faults.memory = "Memory, such as 32Gi; at most 1Pi";
  if (!(/^\d+(\.\d+)?$/.test(price.trim()) && Number(price) <= DEAREST)) faults.price = "A price an hour, such as 0.80: no less than 0, no more than a million";
  return faults;
}

/** Marks the rows that faults are of, such as `prices.m1.large: …` or `flavours.big.price: …`, and no others. */
export function mark(controls, faults) {
  for (const row of controls.querySelectorAll("[data-key]")) {
    const { key } = row.dataset;
    const mine = faults.filter((each) => each.startsWith(`${key}: `) || each.startsWith(`${key}.price: `)).map((each) => each.slice(each.indexOf(": ", key.length) + 2));
    const field = row.querySelector("input");
    row.querySelector(".fault")?.remove();
    row.classList.toggle("wrong", mine.length > 0);
    field?.removeAttribute("aria-invalid");
    field?.removeAttribute("aria-describedby");
    if (!mine.length) continue;
    const told = h("p", { class: "fault", id: `fault-${key.replace(/\W/g, "-")}` }, mine.join("; "));
    row.append(told);
    field?.setAttribute("aria-invalid", "true");
    field?.setAttribute("aria-describedby", told.id);
  }
}

const strings = (of) => Object.fromEntries(Object.entries(of ?? {}).filter(([, value]) => typeof value === "string"));

/** What an address asks, as `/simulate` takes it; what else may stand there is left out. */
export function changeOf(text) {
  let said;
  try {
    said = JSON.parse(text) ?? {};
  } catch {
    said = {};
  }
  const list = (of) => (Array.isArray(of) ? of : []);
  const flavours = list(said.flavours).map((each) => strings(each)).map(({ name, cpu, memory, price }) => ({ name, cpu, memory, price }));
  return {
    lift: list(said.lift).filter((each) => typeof each === "string"),
    prices: strings(said.prices),
    flavours: flavours.filter((each) => Object.values(each).every((value) => value !== undefined)),
    replicas: Object.fromEntries(Object.entries(said.replicas ?? {}).filter(([, value]) => Number.isInteger(value))),
  };
}
