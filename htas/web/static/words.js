// Figures and instants as people read them, and reasons by what they ask of the reader.

export const money = (value, most = 4) => {
  const amount = Number(value);
  const places = Math.abs(amount) >= 1000 ? 0 : Math.abs(amount) >= 10 ? 2 : most;
  return amount.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
};
export const percent = (share, places = 0) => `${(share * 100).toFixed(places)} %`;
export const number = (value) => Number(value).toLocaleString("en");
export const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
export const cores = (milli) => (milli === 1000 ? "1 core" : milli > 1000 ? `${+(milli / 1000).toFixed(1)} cores` : `${milli}m`);
export const bytes = (value) => (value >= 2 ** 30 ? `${+(value / 2 ** 30).toFixed(1)} GiB` : `${Math.round(value / 2 ** 20)} MiB`);

const pad = (value) => String(value).padStart(2, "0");
export const clock = (at) => {
  const date = new Date(at * 1000);
  return `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
};
export const seconds = (at) => `${clock(at)}:${pad(new Date(at * 1000).getUTCSeconds())}`;
export const day = (at) => new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
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
    "RunLengthUnknown", "MigrationFailed", "UnreadablePod", "WaitsForWord", "Rejected", "NodeGroupMinSizeReached", "NoPlaceToMovePods", "ScaleDownDisabled"],
  others: ["NotAutoscaled", "NoPrice", "NodeGroupNotElastic"],
  trouble: ["NotReady", "NotInitialized", "TooManyUnhealthy", "CloudUnreachable", "StoreUnwritable"],
};
export const kindOf = (reason) => Object.keys(KINDS).find((kind) => KINDS[kind].includes(reason)) ?? "time";
export const KIND_NAMES = {
  used: "well used", time: "waits for its time", held: "held", leaving: "leaving", others: "not ours to return", trouble: "in trouble",
};

/** The reasons that are met most, without their double negatives; the detail has the term itself. */
const PLAIN = {
  NotUnderutilized: "well used", NotUnneededLongEnough: "has room, not for long yet", NotEmptyLongEnough: "empty, not for long yet",
  NoPlaceToMovePods: "no place for its pods", PaidUntilBillingPeriodEnds: "empty, paid for a while", NodeGroupMinSizeReached: "its group is at its minimum",
  NotAutoscaled: "not bought by HTAS", NoPrice: "without a price", InCooldown: "just bought", BlockedByPod: "held by a pod", Unjudged: "not judged yet",
  QueueNotEmpty: "work waited a moment ago", ServiceNotOptedIn: "service not opted in", WaitsForWord: "waits for your word", Rejected: "stays: somebody said no", Approved: "approved, goes soon", NotEnoughPdb: "disruption budgets",
};
export const spoken = (reason) => PLAIN[reason] ?? reason.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
