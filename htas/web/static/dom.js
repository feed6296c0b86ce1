// Elements without markup in strings: what comes from a cluster is always text.

/** An element: h("p", {class: "note", onclick}, "text", child, [children]). `style` takes CSS custom properties too. */
export function h(name, options = {}, ...children) {
  return fill(document.createElement(name), options, children);
}

/** The same in SVG. */
export function s(name, options = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), options, children);
}

function fill(element, options, children) {
  for (const [key, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Puts other children into an element, keeping where the reader was. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

/** A figure: its title above, and below what it means or leads to. */
export const figure = (title, value, note, mood = "") =>
  h("section", { class: `figure ${mood}` }, h("h2", {}, title), h("p", { class: "value" }, value), h("p", {}, note));

/** The address of a node's or a pod's particulars, opened beside a page such as "#/now". */
export const nodeAt = (name, page) => `${page}/node/${encodeURIComponent(name)}`;
export const podAt = (name, page) => `${page}/pod/${name.split("/").map(encodeURIComponent).join("/")}`;
export const nodeLink = (name, page) => h("a", { href: nodeAt(name, page) }, name);
export const podLink = (name, page) => h("a", { href: podAt(name, page) }, name);

/** A name that is shortened in the middle where room is short: its end is what tells nodes apart. */
export function nameOf(name) {
  const at = Math.max(0, name.length - TAIL);
  return h("span", { class: "name", title: name }, h("span", { class: "head" }, name.slice(0, at)), h("span", { class: "tail" }, name.slice(at)));
}
const TAIL = 11;

const quoted = (cell) => (/[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
/** What a spreadsheet would take for a formula is text. */
const harmless = (cell) => (/^[=+@\t-]/.test(cell) && Number.isNaN(Number(cell)) ? `'${cell}` : cell);
/** Rows of cells as CSV (RFC 4180). */
export const csvOf = (titles, rows) => [titles, ...rows].map((row) => row.map((cell) => quoted(harmless(String(cell ?? "")))).join(",")).join("\r\n") + "\r\n";

/** A button that saves a table; `rows` is asked when somebody clicks, and may take a while. */
export function csvButton(name, titles, rows) {
  const save = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      const address = URL.createObjectURL(new Blob([csvOf(titles, await rows())], { type: "text/csv" }));
      h("a", { href: address, download: `htas-${name}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } finally {
      button.disabled = false;
    }
  };
  return h("button", { type: "button", class: "text", onclick: save, title: "Save this table as CSV", "aria-label": `Save ${name} as CSV` }, "CSV");
}

/** A table of rows of cells; a title in a list, ["CPU"], heads a column of figures. */
export function listed(titles, rows, kind = "list") {
  const align = (title) => ({ class: Array.isArray(title) && "n" });
  const head = titles.map((title) => h("th", { scope: "col", ...align(title) }, title));
  const body = rows.map((cells) => h("tr", {}, cells.map((cell, i) => h("td", align(titles[i]), cell))));
  return h("table", { class: kind }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
}

/** A list: the first `most` items are visible, the others after a click. */
export function folded(kind, items, { most, what }) {
  const list = h("ul", { class: kind }, items.slice(0, most));
  const rest = items.slice(most);
  if (!rest.length) return list;
  const open = h("button", { type: "button", class: "quiet more", onclick: () => { list.append(...rest); open.remove(); rest[0].querySelector("a, button, input")?.focus(); } }, `${rest.length} more ${what}${rest.length === 1 ? "" : "s"}`);
  return [list, open];
}

/** Calls once things have been quiet for so long. */
export function settled(wait, act) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...args), wait);
  };
}
