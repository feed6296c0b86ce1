"""The report's tables in Markdown: savings with confidence intervals, what every policy came to, parts switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from htas.model.money import bill_amount
from tools.lab.report.statistics import Saving, bills, is_whole, paired_saving, spread
from tools.lab.report.titles import pattern_title, policy_title
from tools.lab.results import Results, RunResult

OURS = "htas"
"""Policies of this name, or of `htas-` and more, are HTAS; all others are compared with it."""
PRINTED = "paper-as-printed"
"""The paper's algorithms without anything of ours: compared with its baselines by itself, and with HTAS as they are."""
PAPER: Mapping[tuple[str, str], int] = {
    ("default-kubernetes", "stable"): 27,
    ("default-kubernetes", "growing"): 23,
    ("default-kubernetes", "cycle"): 30,
    ("default-kubernetes", "on-off"): 32,
    ("coca", "stable"): 25,
    ("coca", "growing"): 24,
    ("coca", "cycle"): 15,
    ("coca", "on-off"): 22,
    ("stratus", "stable"): 10,
    ("stratus", "growing"): 0,
    ("stratus", "cycle"): 12,
    ("stratus", "on-off"): 18,
}
"""What HTAS saved in percent (HTAS paper 6.3); against Stratus under growing load the two were "quite close"."""


class SavingLine(msgspec.Struct, frozen=True):
    """One saving, for spreadsheets; shares in percent. `half_width` is of the 95 % interval, "" for a single seed."""

    experiment: str
    policy: str
    against: str
    pattern: str
    seeds: int
    saving_percent: str
    half_width: str
    paper_percent: str


def is_ours(policy: str) -> bool:
    return policy == OURS or policy.startswith(f"{OURS}-")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose first column is text and whose others are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


# Savings.


def savings(results: Results) -> str:
    """For each policy of HTAS, and for the paper as printed, a table: others down, patterns across."""
    parts = []
    for ours in filter(_is_compared, results.policies):
        rows = [
            [f"against {policy_title(other)}", *(_cell(results, ours, other, pattern) for pattern in results.patterns)]
            for other in _others(results, ours)
        ]
        if rows:
            parts.append(f"### {policy_title(ours)}\n\n{table(['saves', *_patterns(results)], rows)}")
    return "\n".join(parts)


def _is_compared(policy: str) -> bool:
    return is_ours(policy) or policy == PRINTED


def _others(results: Results, ours: str) -> list[str]:
    """Who a policy is compared with: baselines. Other readings of the paper stand beside it in a table of their own."""
    return [
        other
        for other in results.policies
        if other != ours and not is_ours(other) and not other.startswith(f"{PRINTED}/")
    ]


def _cell(results: Results, ours: str, other: str, pattern: str) -> str:
    found = saving_of(results, ours, other, pattern)
    if found is None:
        return "–"
    text, paper = saving_text(found), PAPER.get((other, pattern))
    if paper is None:
        return text
    return f"{text}<br>paper {paper} %: {'met' if found.share * 100 >= paper else '**not met**'}"


def saving_of(results: Results, ours: str, other: str, pattern: str) -> Saving | None:
    return paired_saving(bills(results.of(ours, pattern)), bills(results.of(other, pattern)))


def saving_text(saving: Saving) -> str:
    """27.3 % ± 1.1; without an interval where there is one seed alone."""
    share = f"{round(float(saving.share * 100), 1) + 0.0:.1f} %"  # + 0.0: no -0.0
    return share if saving.half_width is None else f"{share} ± {100 * saving.half_width:.1f}"


def saving_lines(results: Results) -> list[SavingLine]:
    lines = []
    for ours in filter(_is_compared, results.policies):
        for other in _others(results, ours):
            for pattern in results.patterns:
                found = saving_of(results, ours, other, pattern)
                if found is None:
                    continue
                width = "" if found.half_width is None else f"{100 * found.half_width:.4f}"
                share, paper = f"{float(found.share * 100):.4f}", str(PAPER.get((other, pattern), ""))
                lines.append(SavingLine(results.experiment, ours, other, pattern, found.seeds, share, width, paper))
    return lines


def _patterns(results: Results) -> list[str]:
    return [pattern_title(pattern) for pattern in results.patterns]


# What every policy came to.


def outcomes(results: Results) -> str:
    """A table for each pattern: means over seeds, with the least and the most of cost and scheduling time."""
    parts = []
    for pattern in results.patterns:
        rows = [_outcome(policy, runs) for policy in results.policies if (runs := results.of(policy, pattern))]
        parts.append(f"### {pattern_title(pattern)}\n\n{table(_outcome_head(results.currency), rows)}")
    return "\n".join(parts)


def _outcome_head(currency: str) -> list[str]:
    return [
        "policy",
        f"cost ({currency})",
        "scheduling, mean (s)",
        "99th percentile (s)",
        "CPU used",
        "memory used",
        "peak nodes",
        "tasks moved",
        "nodes drained",
        "overhead of a move (s)",
        "work repeated (s)",
    ]


def _outcome(policy: str, runs: Sequence[RunResult]) -> list[str]:
    time = spread(run.mean_scheduling_s for run in runs)
    moved = [run.mean_migration_s for run in runs if run.migrations]
    return [
        policy_title(policy),
        _money(runs),
        f"{time.mean:.1f} ({time.least:.1f}–{time.most:.1f})",
        f"{_mean(runs, lambda run: run.p99_scheduling_s):.0f}",
        f"{_mean(runs, lambda run: run.mean_cpu_utilization):.0%}",
        f"{_mean(runs, lambda run: run.mean_memory_utilization):.0%}",
        f"{_mean(runs, lambda run: run.peak_nodes):.1f}",
        f"{_mean(runs, lambda run: run.migrations):.1f}",
        f"{_mean(runs, lambda run: run.deprovisionings):.1f}",
        f"{spread(moved).mean:.1f}" if moved else "–",
        f"{_mean(runs, lambda run: run.work_lost_s):.0f}",
    ]


def _money(runs: Sequence[RunResult]) -> str:
    """The mean of bills, added up exactly, with the least and the most."""
    amounts = sorted(run.bill_nano_seconds for run in runs)
    mean = bill_amount(round(Decimal(sum(amounts)) / len(amounts)))
    if len(amounts) == 1:
        return f"{mean:.4f}"
    return f"{mean:.4f} ({bill_amount(amounts[0]):.4f}–{bill_amount(amounts[-1]):.4f})"


def _mean(runs: Sequence[RunResult], value: Callable[[RunResult], float]) -> float:
    return spread(float(value(run)) for run in runs).mean


# Parts of HTAS switched off in turn.


def ablation(results: Results) -> str:
    """A table for each whole policy: `htas/no-bins` is `htas` without a part, and costs so much more."""
    parts = []
    for whole in results.policies:
        lacking = [policy for policy in results.policies if policy.startswith(f"{whole}/")]
        rows = [
            [policy_title(policy), *(_worth(results, whole, policy, pattern) for pattern in results.patterns)]
            for policy in lacking
        ]
        if rows:
            parts.append(f"### {policy_title(whole)}\n\n{table(['it saves, against', *_patterns(results)], rows)}")
    return "\n".join(parts)


def _worth(results: Results, whole: str, lacking: str, pattern: str) -> str:
    found = saving_of(results, whole, lacking, pattern)
    if found is None:
        return "–"
    return f"**{saving_text(found)}**" if found.is_certain else saving_text(found)


# The whole trace.


def trace(results: Results) -> str:
    """A line for each policy and trace: the bill, waiting, utilisation."""
    head = ["policy", f"bill ({results.currency})", "waiting, mean (s)", "99th percentile (s)", "longest (s)"]
    head += ["CPU used", "memory used", "machine hours", "tasks ended"]
    rows = [
        _trace_row(policy, pattern, runs, len(results.patterns) > 1)
        for pattern in results.patterns
        for policy in results.policies
        if (runs := results.of(policy, pattern))
    ]
    return table(head, rows)


def _trace_row(policy: str, pattern: str, runs: Sequence[RunResult], is_named: bool) -> list[str]:
    finished, tasks = sum(run.finished for run in runs), sum(run.tasks for run in runs)
    return [
        policy_title(policy) + (f", {pattern_title(pattern)}" if is_named else ""),
        _money(runs),
        f"{_mean(runs, lambda run: run.mean_scheduling_s):.1f}",
        f"{_mean(runs, lambda run: run.p99_scheduling_s):.0f}",
        f"{max(run.max_scheduling_s for run in runs):.0f}",
        f"{_mean(runs, lambda run: run.mean_cpu_utilization):.0%}",
        f"{_mean(runs, lambda run: run.mean_memory_utilization):.0%}",
        f"{_mean(runs, lambda run: run.machine_hours):,.1f}",
        f"{finished:,} of {tasks:,}",
    ]


def left_out(results: Results) -> list[str]:
    """Runs whose bill is not compared, and why."""
    return [
        f"{policy_title(run.policy)}, {pattern_title(run.pattern)}, seed {run.seed}:"
        f" {run.finished:,} of {run.tasks:,} tasks ended; {run.note}"
        for run in results.runs
        if not is_whole(run)
    ]
