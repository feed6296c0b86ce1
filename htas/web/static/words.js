// Figures and instants as people read them, and reasons by what they ask of the reader.

const decimals = (value, places) => Number(value).toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
/** An amount, always to a hundredth: amounts of one page are then read in one column. */
export const money = (value) => {
  const amount = Number(value);
  return amount !== 0 && Math.abs(amount) < 0.005 ? (amount < 0 ? "−0.01 or less" : "under 0.01") : decimals(amount, 2);
};
/** A price per hour, always to a ten-thousandth, as price files have it. */
export const price = (value) => decimals(value, 4);
export const percent = (share, places = 0) => `${(share * 100).toFixed(places)} %`;
export const number = (value) => Number(value).toLocaleString("en");
export const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
export const cores = (milli) => (milli === 1000 ? "1 core" : milli > 1000 ? `${+(milli / 1000).toFixed(1)} cores` : `${milli}m`);
export const bytes = (value) => (value >= 2 ** 30 ? `${+(value / 2 ** 30).toFixed(1)} GiB` : `${Math.round(value / 2 ** 20)} MiB`);

const pad = (value) => String(value).padStart(2, "0");
// Instants are shown in the reader's time zone.
export const clock = (at) => {
  const date = new Date(at * 1000);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}`;
};
export const seconds = (at) => `${clock(at)}:${pad(new Date(at * 1000).getSeconds())}`;
export const day = (at) => new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
/** The reader's zone at an instant, such as "CET" or "GMT+2". */
export const zone = (at) => new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(new Date(at * 1000)).find((part) => part.type === "timeZoneName").value;
/** An instant as an input of type datetime-local takes it. */
export const local = (at) => {
  const date = new Date(at * 1000);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${clock(at)}`;
};
export const length = (value) => {
  const left = Math.max(0, Math.round(value));
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) if (left >= 2 * size) return `${Math.round(left / size)}${unit}`;
  return `${left}s`;
};

/** What a reason asks of the reader: nothing, time, a decision, or help. */
const KINDS = {
  used: ["NotUnderutilized", "NeededByPlan"],
  leaving: ["Leaving", "WouldLeave", "Approved", "CurrentlyBeingDeleted", "BeingReplaced"],
  held: ["BlockedByPod", "DoNotDisrupt", "ScaleDownDisabledAnnotation", "BlockedByOnCompletionPod", "RuntimeCannotCheckpoint",
    "RunLengthUnknown", "MigrationFailed", "UnreadablePod", "PendingApproval", "Rejected", "NodeGroupMinSizeReached", "NoPlaceToMovePods", "ScaleDownDisabled"],
  others: ["NotAutoscaled", "NoPrice", "NodeGroupNotElastic"],
  trouble: ["NotReady", "NotInitialized", "TooManyUnhealthy", "CloudUnreachable", "StoreUnwritable"],
};
export const kindOf = (reason) => Object.keys(KINDS).find((kind) => KINDS[kind].includes(reason)) ?? "time";
/** The most frequent reasons without their double negatives; the detail view has the term itself. */
const PLAIN = {
  NotUnderutilized: "well used", NotUnneededLongEnough: "underused, not for long enough yet", NotEmptyLongEnough: "empty, not for long enough yet",
  NoPlaceToMovePods: "no place for its pods", PaidUntilBillingPeriodEnds: "empty, paid until its billing period ends", NodeGroupMinSizeReached: "group at its minimum size",
  NotAutoscaled: "not managed by HTAS", NoPrice: "no price", InCooldown: "launched recently", BlockedByPod: "blocked by a pod", Unjudged: "not evaluated yet",
  QueueNotEmpty: "pods were pending a moment ago", ServiceNotOptedIn: "service not opted in to migration", Rejected: "drain rejected", Approved: "drain approved", NotEnoughPdb: "disruption budgets",
  Leaving: "draining", WouldLeave: "would be drained", WouldBeLaunched: "would be launched", Wanted: "launch requested",
};
export const spoken = (reason) => PLAIN[reason] ?? String(reason).replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** Text that may be an enum's value, such as NoPlaceToMovePods or "NotReady: …", in words. */
export const inWords = (text) => String(text).replace(/^([A-Z][a-z]+){2,}(?=$|:)/, (word) => spoken(word));

/** What was done, by the API's word for it. */
export const DONE = { launch: "launched", drain: "drained", delete: "deleted", move: "moved", preempt: "preempted", evict: "evicted", rearrange: "rearranged", undo: "drain undone", adopt: "adopted" };
const TRIED = { launch: "launch", drain: "drain", delete: "deletion", move: "move", preempt: "preemption", evict: "eviction", rearrange: "rearrangement", undo: "undoing a drain", adopt: "adoption" };
const ENDED = { failed: "failed", dropped: "cancelled" };

/** A decision and what became of it: "drained", "launch failed", "would be launched". */
export function became(kind, status) {
  if (status === "done") return DONE[kind] ?? spoken(kind);
  if (status === "recommended") return `would be ${DONE[kind] ?? spoken(kind)}`;
  return `${TRIED[kind] ?? spoken(kind)} ${ENDED[status] ?? spoken(status)}`;
}

/** A name without a group, in words. */
export const groupName = (name) => (name === "" || name === "(none)" ? "Nodes in no group of HTAS" : name);
/** A key of the bill, in words. */
export const keyName = (key) => (key === "(idle)" ? "Idle capacity" : key.replace(/^\((\d+) others\)$/, "$1 others"));
