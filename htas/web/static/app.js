// Which page is shown, when it is drawn again, and who may see it.

import { follow, get, login, logout, Refused } from "./api.js";
import { approvals } from "./approvals.js";
import { decisions } from "./decisions.js";
import { closeDetail, openDetail } from "./detail.js";
import { h, show } from "./dom.js";
import { moneyPage } from "./money.js";
import "./keys.js";
import { now } from "./now.js";
import { recommended } from "./recommended.js";
import { whatIf } from "./whatif.js";
import { forget, fresh, lost } from "./stale.js";
import { day, seconds, zone } from "./words.js";

const PAGES = {
  now: { title: "Now", make: now },
  money: { title: "Money", make: moneyPage },
  decisions: { title: "Decisions", make: decisions },
  "what-if": { title: "What if", make: whatIf },
  approvals: { title: "To approve", make: approvals },
  recommended: { title: "Recommended", make: recommended },
};
/** A page that has to wait is drawn again after so long at most. */
const LONGEST_AGAIN_S = 60;
const MODES = { live: "", recommend: "recommend mode", demo: "demo, virtual time", dump: "from a dump" };
const main = document.getElementById("main");
const pulse = document.getElementById("pulse");
let page = null;
let busy = false;
let again = false;
let unfollow = null;

/** What stands in the address after a slash; a lone % that somebody typed is itself. */
function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function asked() {
  const [, name = "now", kind, ...rest] = location.hash.split("/");
  return { name: name in PAGES ? name : "now", kind, rest: rest.map(plain).join("/") };
}

async function route() {
  if (main.querySelector(".login")) return; // what the address names is shown once somebody has logged in
  const { name, kind, rest } = asked();
  document.title = `${PAGES[name].title} · HTAS`;
  for (const link of document.querySelectorAll("#pages a")) {
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const comes = page !== null && page.name !== name;
  if (page?.name !== name) {
    page = { name, ...PAGES[name].make(refresh) };
    show(main, page.root);
  }
  page.place?.(kind, rest);
  await refresh();
  if (!page) return; // asked for a token, or there is nothing to show yet
  if (kind && !page.places?.includes(kind)) openDetail(kind, rest, `#/${name}`);
  else closeDetail();
  if (comes) readOn();
}

/** The keyboard goes on where the page begins that somebody went to, and not in the header again before all its links. */
function readOn() {
  const at = document.activeElement;
  if (at !== document.body && !at?.closest("header.bar, .banner")) return; // where the page has put it, or somebody has
  const heading = main.querySelector("h1, h2") ?? main;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** Draws the page from fresh documents; calls that come meanwhile make one more round. */
async function refresh() {
  if (!page) return; // route() draws the next
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  const shown = page;
  try {
    const cluster = await get("/cluster");
    fresh(cluster);
    document.getElementById("where").textContent = [cluster.cluster, MODES[cluster.mode]].filter(Boolean).join(" · ");
    document.getElementById("leave").hidden = cluster.is_entered_once; // a link that works once lets nobody back in
    banner(cluster);
    unfollow ??= follow(refresh, (comes) => pulse.classList.toggle("still", !comes));
    pulse.textContent = `${day(cluster.at)} ${seconds(cluster.at)} ${zone(cluster.at)}`;
    await drawn(shown, cluster);
  } catch (error) {
    fail(error);
  } finally {
    main.removeAttribute("aria-busy");
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

/** Where it is others' turn the page stays as it is, says so, and is drawn again when the server wants to be asked. */
async function drawn(shown, cluster) {
  try {
    await shown.draw(cluster);
    shown.isDrawn = true;
    shown.patience?.remove();
    shown.patience = null;
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 503) throw error;
    const after = Math.min(LONGEST_AGAIN_S, Math.max(1, error.again ?? 5));
    shown.patience ??= h("p", { class: "note", role: "status" });
    shown.patience.textContent = `Not ready yet: ${error.message}.`;
    shown.root.append(shown.patience);
    setTimeout(() => page === shown && refresh(), after * 1000);
  }
}

/** The line on every page: nothing is carried out, or proposals wait for approval. */
function banner(cluster) {
  const { awaits } = cluster;
  const advises = cluster.mode === "recommend";
  const asks = document.querySelector('#pages a[href="#/approvals"]');
  document.querySelector('#pages a[href="#/recommended"]').hidden = !advises;
  asks.hidden = awaits === null;
  asks.textContent = awaits ? `To approve (${awaits})` : "To approve";
  document.body.classList.toggle("wide-nav", advises || awaits !== null);
  const line = document.getElementById("banner");
  line.hidden = !advises && !awaits;
  if (awaits) show(line, h("b", {}, `${awaits} to approve.`), " HTAS disrupts running pods only after approval: ", h("a", { href: "#/approvals" }, "review the proposals"), ".");
  else if (advises) show(line, h("b", {}, "Recommend mode."), " HTAS watches this cluster and changes nothing in it: ", h("a", { href: "#/recommended" }, "see recommendations and savings"), ".");
}

function fail(error) {
  if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
    askForToken(error);
  } else if (error instanceof Refused) {
    page = null;
    show(main, h("section", { class: "empty" }, h("h1", {}, "No data yet"), h("p", {}, error.message)));
    setTimeout(route, 3000);
  } else {
    lost();
    if (page && !page.isDrawn) {
      page.patience ??= h("p", { class: "empty", role: "status" });
      page.patience.textContent = "No data for this page: HTAS does not answer. Trying again every 3 seconds.";
      page.root.append(page.patience);
    }
    setTimeout(refresh, 3000);
    console.warn(error);
  }
}

function askForToken(error) {
  unfollow?.();
  unfollow = null;
  again = false;
  if (main.querySelector(".login")) return; // somebody may be typing in it
  page = null;
  closeDetail();
  document.getElementById("where").textContent = "";
  document.getElementById("leave").hidden = true;
  pulse.textContent = "";
  forget();
  const said = h("p", { class: "said", role: "alert" });
  const field = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const form = h(
    "form",
    {
      class: "login card",
      onsubmit: async (event) => {
        event.preventDefault();
        try {
          await login(field.value);
          form.remove();
          route();
        } catch (refused) {
          said.textContent = refused.message;
          field.select();
        }
      },
    },
    h("h1", {}, "Log in"),
    h("p", {}, "Log in with the token of http.tokenFile, or with a Kubernetes token that may read this dashboard."),
    h("label", { for: "token" }, "Token"),
    field,
    h("button", { class: "main" }, "Log in"),
    said,
    h("details", {}, h("summary", {}, "Where is the token?"), h("p", { class: "note" }, "With http.createToken: true, the chart keeps it in the Secret RELEASE-token of its namespace:"), h("code", {}, "kubectl -n htas-system get secret htas-token -o jsonpath='{.data.token}' | base64 -d")),
  );
  if (error.message.includes("none is configured")) said.textContent = error.message;
  show(main, form);
  field.focus();
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const chosen = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const set = (name) => {
    if (name) document.documentElement.dataset.theme = name;
    button.setAttribute("aria-label", chosen() === "dark" ? "Use light colours" : "Use dark colours");
    button.title = button.getAttribute("aria-label");
  };
  set(localStorage.getItem("htas-theme"));
  button.addEventListener("click", () => {
    const name = chosen() === "dark" ? "light" : "dark";
    localStorage.setItem("htas-theme", name);
    set(name);
  });
}

document.getElementById("leave").addEventListener("click", async () => {
  unfollow?.();
  unfollow = null;
  await logout();
  route();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address would be a page's
  main.focus();
});
addEventListener("hashchange", route);
theme();
main.setAttribute("aria-busy", "true");
route();
