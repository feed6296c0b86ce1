// The line that says that what is shown is old: the server is away, or it has finished no cycle for long.

import { h, show } from "./dom.js";
import { day, length, seconds, zone } from "./words.js";

/** A daemon that answers and has finished no cycle for so long is in trouble: cycles run every few seconds. */
const LATE_S = 180;
const line = document.getElementById("stale");
let shown = null; // the instant, by the cluster's clock, that the figures are of
let heard = performance.now();
let pictured = performance.now();
let isLost = false;
let isLive = false;

/** A picture has come. */
export function fresh(cluster) {
  isLive = cluster.mode === "live" || cluster.mode === "recommend";
  heard = performance.now();
  if (cluster.at !== shown) pictured = heard;
  shown = cluster.at;
  isLost = false;
  draw();
}

/** No answer: what is shown stays, and says how old it is. */
export function lost() {
  isLost = true;
  draw();
}

/** Nothing is shown: somebody has to log in. */
export function forget() {
  shown = null;
  isLost = false;
  draw();
}

function draw() {
  const age_s = (performance.now() - (isLost ? heard : pictured)) / 1000;
  for (const each of document.querySelectorAll(".age")) each.textContent = shown === null ? "" : ` · updated ${length(age_s)} ago`;
  const isOld = shown !== null && (isLost || (isLive && age_s > LATE_S));
  document.body.classList.toggle("stale", isOld);
  line.hidden = !isOld;
  if (!isOld) return;
  const what = isLost ? "No answer from HTAS." : "HTAS answers, but has not finished a cycle for minutes.";
  const remedy = isLost ? "Trying again." : "Check its log and /healthz.";
  show(line, h("b", {}, what), ` These figures are from ${day(shown)} ${seconds(shown)} ${zone(shown)}, ${length(age_s)} ago. ${remedy}`);
}

setInterval(draw, 1000);
