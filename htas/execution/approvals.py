"""Approvals: what disturbs running pods waits between plan and execution until somebody has said yes or no.

Waiting, yes and no are outcomes, and so on record, each time with all that still counts: from there they are known
again after a restart. What has begun is in the journal by then, and goes on without another word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from threading import Lock

import msgspec

from htas.model.approvals import ApprovalState, Asked, Question, begun_by, question_of, questions_of, without
from htas.model.modes import Approval, Otherwise
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.snapshot import ClusterSnapshot
from htas.ports import ConflictError, GivenError, NotFoundError

GONE_S = 900.0
"""What no plan has proposed for so long is forgotten: longer than any stage's period, and than a look at a group."""
SHOWN_S = 3600.0
"""So long somebody who said yes is told that it came to nothing."""
NOBODY = "nobody"
FEWEST_DIGITS = 16
"""Of an id somebody may leave out the end. With fewer, who names pods finds two questions of one beginning in seconds:
a yes to the harmless one would be one to the other.
"""


class Approvals:
    """`gate` is for the thread that runs cycles, `asked` and `say` for any other; `on_word` wakes the former."""

    def __init__(self, approval: Approval | None, now: Callable[[], float]) -> None:
        self.approval = approval
        """None: nothing needs approval."""
        self.on_word: Callable[[], None] = lambda: None
        self.words = 0
        """How often something was said: news that a cycle should come early for."""
        self._now = now
        self._lock = Lock()
        self._asked: dict[str, Asked] = {}
        self._lapsed: dict[str, Asked] = {}
        """Yes that came to nothing, of late. The same may be asked again meanwhile."""
        self._said: list[Outcome] = []
        """What was said since the last cycle."""
        self._looked_at: float | None = None
        """When the newest plan was looked at; None: not by this process."""
        self._handed: dict[str, frozenset[tuple[Action, str]]] = {}
        """What was approved and is handed to execution in this cycle, and what would be done first of it."""

    def gate(self, plan: Plan, snapshot: ClusterSnapshot, currency: str) -> tuple[Plan, list[Outcome]]:
        """The plan without what waits or was rejected, and what there is to tell of it."""
        approval = self.approval
        if approval is None:
            return plan, []
        now = snapshot.taken_at
        proposed = {each.id: each for each in questions_of(plan, snapshot)}
        with self._lock:
            outcomes, self._said = self._said, []
            self._be_patient(self._looked_at, now)
            self._looked_at = now
            outcomes += self._forget(approval, snapshot, proposed, currency)
            outcomes += self._take_in(proposed, now, currency)
            outcomes += self._out_of_patience(approval, proposed, now, currency)
            states = {key: self._asked[key].state for key in proposed}
            self._use(key for key, state in states.items() if state is ApprovalState.APPROVED)
            questions = ((question_of(proposal, snapshot), proposal) for proposal in plan.proposals)
            self._handed = {
                question.id: begun_by(proposal)
                for question, proposal in questions
                if question is not None and states[question.id] is ApprovalState.APPROVED
            }
        rejected = {key for key, state in states.items() if state is ApprovalState.REJECTED}
        held = {key for key, state in states.items() if state is ApprovalState.WAITING}
        return without(plan, held, rejected, snapshot), outcomes

    def settle(self, executed: Iterable[Outcome]) -> None:
        """Give a yes back that execution has begun nothing of: the world had changed, or a call failed."""
        found: dict[tuple[Action, str], list[Outcome]] = {}
        for outcome in executed:
            found.setdefault((outcome.action, outcome.subject), []).append(outcome)
        with self._lock:
            for key, first in self._handed.items():
                told = [outcome for each in first for outcome in found.get(each, ())]
                if told and not any(map(_is_begun, told)) and key in self._asked:
                    self._asked[key] = msgspec.structs.replace(self._asked[key], is_used=False)
            self._handed = {}

    @property
    def waiting(self) -> int:
        """How much waits for a word."""
        with self._lock:
            return sum(each.state is ApprovalState.WAITING for each in self._asked.values())

    def asked(self) -> list[Asked]:
        """What waits, the longest first, and then what was said of late, the newest first."""
        with self._lock:
            found = [*self._asked.values(), *self._lapsed.values()]
        return sorted(found, key=_waiting_first)

    def say(self, ids: Iterable[str], who: str, *, is_approved: bool, currency: str) -> list[Asked]:
        """Approve or reject; without any id everything that waits. The same word said again changes nothing. For an
        id its beginning does, of 16 digits or more, where no other has it.

        Raises NotFoundError where one is not known, GivenError where it could be several, ConflictError where another
        word stands: then none is said.
        """
        state = ApprovalState.APPROVED if is_approved else ApprovalState.REJECTED
        with self._lock:
            waiting = {key for key, each in self._asked.items() if each.state is ApprovalState.WAITING}
            known = self._lapsed | self._asked
            chosen = list(dict.fromkeys(meant(ids, known))) or sorted(waiting)
            others = [key for key in chosen if known[key].state not in (ApprovalState.WAITING, state)]
            if others:
                raise ConflictError("; ".join(f"{key}: {_stands(known[key])}" for key in others))
            found = [
                self._say(key, state, who, self._now(), currency) if key in waiting else self._asked[key]
                for key in chosen
            ]
            self.words += bool(waiting.intersection(chosen))
        self.on_word()
        return found

    def remember(self, asked: Iterable[Asked]) -> None:
        """What was proposed and said before a restart, as the newest recorded cycle has it; what waits waits on.

        It may be read only after some cycles (the store was away): what was said since then stands.
        """
        now = self._now()
        with self._lock:
            said = {key: each for key, each in self._asked.items() if each.state is not ApprovalState.WAITING}
            for each in asked:
                into = self._lapsed if each.state is ApprovalState.LAPSED else self._asked
                into[each.question.id] = _after_nobody_was_there(each, each.proposed_last, now)
            self._asked |= said

    # Inside, under the lock.

    def _be_patient(self, looked_at: float | None, now: float) -> None:
        """While no plan was made nobody may have been there to ask: that is no silence."""
        if looked_at is not None:
            self._asked = {key: _after_nobody_was_there(each, looked_at, now) for key, each in self._asked.items()}

    def _take_in(self, proposed: dict[str, Question], now: float, currency: str) -> list[Outcome]:
        """Note what is proposed now; what is so for the first time is told, instead of what waited about its nodes."""
        outcomes = []
        for key, question in proposed.items():
            before = self._asked.get(key)
            if before is None or _is_used_up(before, question):
                if before is not None and not before.is_used:
                    outcomes.append(self._lapse(before, "more pods would leave: it is proposed again", now, currency))
                self._replace(question, proposed)
                outcomes.append(self._ask(question, "pending approval", now, currency))
            elif before.state is ApprovalState.WAITING and _has_more(question, before.question):
                # Silence was about fewer pods.
                outcomes.append(self._ask(question, "pending approval, more pods would leave", now, currency))
            else:
                # What was said was said of the pods that were told then.
                asked_of = question if before.state is ApprovalState.WAITING else before.question
                self._asked[key] = msgspec.structs.replace(before, question=asked_of, proposed_last=now)
        return outcomes

    def _ask(self, question: Question, what: str, now: float, currency: str) -> Outcome:
        """Let a question wait from now on."""
        self._asked[question.id] = Asked(question, ApprovalState.WAITING, now, now)
        return Outcome(Action.PROPOSE, question.id, OutcomeStatus.DONE, f"{what}: {question.told(currency)}")

    def _use(self, keys: Iterable[str]) -> None:
        """What was approved is begun now; what is under way needs its yes for the steps that follow."""
        for key in keys:
            if not self._asked[key].question.is_under_way:
                self._asked[key] = msgspec.structs.replace(self._asked[key], is_used=True)

    def _replace(self, question: Question, proposed: Collection[str]) -> None:
        """Forget what waits about the same nodes: one that is to be replaced is not to be emptied into others."""
        for key, each in list(self._asked.items()):
            if key not in proposed and each.state is ApprovalState.WAITING and each.question.nodes & question.nodes:
                del self._asked[key]

    def _lapse(self, each: Asked, why: str, now: float, currency: str) -> Outcome:
        """Tell, and show for a while, that a yes came to nothing."""
        key = each.question.id
        self._lapsed[key] = msgspec.structs.replace(each, state=ApprovalState.LAPSED, said_at=now, lapsed=why)
        message = f"lapsed, {why}: {each.question.told(currency)}"
        return Outcome(Action.APPROVE, key, OutcomeStatus.DROPPED, message, target=each.who)

    def _out_of_patience(
        self, approval: Approval, proposed: Collection[str], now: float, currency: str
    ) -> list[Outcome]:
        """Silence is what the operator says it is; a yes once the same is proposed again, a no at any time."""
        over = [
            key
            for key, each in self._asked.items()
            if each.state is ApprovalState.WAITING and now - each.proposed_at >= approval.within_s
        ]
        is_done = approval.otherwise is Otherwise.CARRY_OUT
        for key in (key for key in over if key in proposed or not is_done):
            self._say(key, ApprovalState.APPROVED if is_done else ApprovalState.REJECTED, NOBODY, now, currency)
        outcomes, self._said = self._said, []
        return outcomes

    def _say(self, key: str, state: ApprovalState, who: str, now: float, currency: str) -> Asked:
        said = msgspec.structs.replace(self._asked[key], state=state, said_at=now, who=who)
        self._asked[key] = said
        action = Action.APPROVE if state is ApprovalState.APPROVED else Action.REJECT
        by = f"by {who}" if who != NOBODY else "without an answer in time"
        message = f"{by}: {said.question.told(currency)}"
        self._said.append(Outcome(action, key, OutcomeStatus.DONE, message, target=who))
        return said

    def _forget(
        self, approval: Approval, snapshot: ClusterSnapshot, proposed: Collection[str], currency: str
    ) -> list[Outcome]:
        """Forget a no that has stood for long enough, and what is not proposed any more or has gone; a yes that came
        to nothing so is told, and shown for a while.
        """
        now, outcomes = snapshot.taken_at, list[Outcome]()
        self._lapsed = {key: each for key, each in self._lapsed.items() if now - (each.said_at or now) < SHOWN_S}
        for key, each in list(self._asked.items()):
            said_at = each.said_at if each.said_at is not None else now
            if each.state is ApprovalState.REJECTED:
                why = "over" if now - said_at >= approval.again_s else ""
            elif each.is_used:
                why = "done" if now - each.proposed_last >= GONE_S or now - said_at >= approval.within_s else ""
            else:
                why = each.question.gone(snapshot) or ("" if key in proposed else each.question.left(snapshot))
                why = why or _stale(each, approval, now, is_proposed=key in proposed)
            if not why:
                continue
            del self._asked[key]
            if each.state is ApprovalState.APPROVED and not each.is_used:
                outcomes.append(self._lapse(each, why, now, currency))
        return outcomes


def _is_used_up(before: Asked, question: Question) -> bool:
    """A yes that has been acted on, or was said of other pods: on a node of batch work others run an hour later."""
    return before.is_used or (before.state is ApprovalState.APPROVED and _has_more(question, before.question))


def _has_more(question: Question, before: Question) -> bool:
    """Whether pods would leave that were not told of."""
    return not set(question.pods) <= set(before.pods)


def _after_nobody_was_there(each: Asked, until: float, now: float) -> Asked:
    """A question that waits, its patience begun later by a time without any plan that is longer than between plans."""
    if each.state is not ApprovalState.WAITING or now - until < GONE_S:
        return each
    return msgspec.structs.replace(each, proposed_at=each.proposed_at + now - until)


def meant(ids: Iterable[str], known: Collection[str]) -> list[str]:
    """What ids or their beginnings stand for. Raises NotFoundError, and GivenError where one could be several."""
    found, missing = [], []
    for said in ids:
        is_long = len(said.partition("-")[2]) >= FEWEST_DIGITS
        alike = [said] if said in known else sorted(key for key in known if is_long and key.startswith(said))
        if len(alike) > 1:
            raise GivenError(f"{said}: could be {' or '.join(alike)}; write more of it")
        found += alike
        missing += [] if alike else [said]
    if missing:
        raise NotFoundError(
            f"{', '.join(missing)}: there is no such proposal (any more); htas approve --list has those there are, an"
            f" id or at least {FEWEST_DIGITS} of its digits will do"
        )
    return found


def _is_begun(outcome: Outcome) -> bool:
    """An order that failed is taken up again by its claim; what was dropped, or could not be called, is over."""
    return outcome.status.is_well or (outcome.action is Action.LAUNCH and outcome.status is OutcomeStatus.FAILED)


def _stale(each: Asked, approval: Approval, now: float, *, is_proposed: bool) -> str:
    """Why what waits or was approved counts no more, empty: it does. What this plan has again is no thing of the past,
    though there was no plan for long.
    """
    if now - each.proposed_last >= GONE_S and not is_proposed:
        return f"no plan has had it for {GONE_S / 60:.0f} minutes"
    if each.said_at is not None and now - each.said_at >= approval.within_s:
        return f"it could not be started within {approval.within_s / 60:.0f} minutes of the approval"
    return ""


def _waiting_first(each: Asked) -> tuple[bool, float]:
    is_over = each.state is not ApprovalState.WAITING
    return is_over, -(each.said_at or 0.0) if is_over else each.proposed_at


def _stands(each: Asked) -> str:
    """What became of a question that was answered."""
    return (
        f"lapsed: {each.lapsed}" if each.state is ApprovalState.LAPSED else f"{each.state.value} by {each.who} already"
    )
