// Charts as SVG: bars over time with a line beside, drawn to the width they have.

import { h, s } from "./dom.js";

const HEIGHT = 210;
const LEFT = 52;
const BOTTOM = 24;
const TOP = 22;

/** A round step for about `count` lines up to a greatest value. */
function step(most, count) {
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
}

/**
 * Bars of `items` ({label, value, least, title}) with a stepped line of what was least. `tick(item, i)` names some of
 * the bars under the axis; `told` is what the picture says, for those who do not see it. What goes on all the time
 * (`isSolid`), unlike what adds up in a while, is drawn without gaps.
 */
export function overTime(items, { unit, format, tick, told, isSolid = false }) {
  const box = h("div", { class: "chart" });
  const draw = () => {
    const width = Math.max(280, box.clientWidth || 600);
    const most = Math.max(...items.map((item) => item.value), 1e-9) * 1.02;
    const x = (i) => LEFT + ((width - LEFT - 4) * i) / items.length;
    const y = (value) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - value / most);
    const slot = (width - LEFT - 4) / items.length;
    const size = step(most, 4);
    const lines = [];
    for (let value = 0; value <= most; value += size) {
      lines.push(s("line", { class: "rule", x1: LEFT, x2: width - 4, y1: y(value), y2: y(value) }), s("text", { class: "axis", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)));
    }
    const bars = items.map((item, i) =>
      s(
        "g",
        { class: "slot" },
        s("title", {}, item.title),
        s("rect", { class: "hit", x: x(i), y: 0, width: slot, height: HEIGHT - BOTTOM }),
        !isSolid && s("rect", { class: "spent", x: x(i) + slot * 0.12, width: Math.max(1, slot * 0.76), y: y(item.value), height: Math.max(0, y(0) - y(item.value)), rx: Math.min(2, slot / 4) }),
      ),
    );
    const steps = items.map((item, i) => `V${y(item.value)}H${x(i + 1)}`).join("");
    const area = isSolid && s("path", { class: "area", d: `M${x(0)} ${y(0)}${steps}V${y(0)}Z` });
    let path = "";
    items.forEach((item, i) => {
      if (item.least === null) return;
      path += `${path && items[i - 1]?.least !== null ? "L" : "M"}${x(i)} ${y(item.least)}H${x(i + 1)}`;
    });
    let free = -1;
    const names = items.map((item, i) => {
      const name = tick(item, i);
      const at = x(i) + slot / 2;
      if (!name || at < free) return null;
      free = at + 46;
      return s("text", { class: "axis", x: Math.min(at, width - 22), y: HEIGHT - 6, "text-anchor": "middle" }, name);
    });
    box.replaceChildren(
      s("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": told }, area, lines, bars, s("path", { class: "least", d: path }), names),
      h("p", { class: "unit", "aria-hidden": "true" }, unit),
    );
  };
  let drawn = 0;
  new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== drawn) {
      drawn = box.clientWidth;
      draw();
    }
  }).observe(box);
  return box;
}

/** Rows of a name, a bar and a figure; `of` is what is all of a bar. */
export function ranked(rows, { of, format, caption, most = 40 }) {
  const drawn = rows.map((row) => line(row, of, format));
  const body = h("tbody", {}, drawn.slice(0, most));
  const rest = drawn.slice(most);
  const open = rest.length > 0 && h("button", { type: "button", class: "quiet more", onclick: () => { body.append(...rest); open.remove(); } }, `${rest.length} more`);
  return [h(
    "table",
    { class: "ranked" },
    h("caption", { class: "unseen" }, caption),
    h("thead", { class: "unseen" }, h("tr", {}, h("th", { scope: "col" }, "What"), h("th", { scope: "col" }, "Part"), h("th", { scope: "col" }, "Amount"))),
    body,
  ), open];
}

const line = (row, of, format) =>
  h(
    "tr",
    { class: row.kind },
    h("th", { scope: "row", title: row.name }, row.href ? h("a", { href: row.href }, row.name) : row.name, row.under && h("small", {}, row.under)),
    h("td", { class: "rod" }, h("span", { style: { "--part": of ? Math.min(1, row.value / of) : 0 } })),
    h("td", { class: "n" }, format(row.value), row.note && h("small", {}, row.note)),
  );
