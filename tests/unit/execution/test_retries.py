"""Who could not leave, and since when."""

from htas.execution.moves_seen import Retries
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Timeouts
from tests.builders import NOW

FAILED = Outcome(Action.EVICT, "default/p", OutcomeStatus.FAILED)


def test_who_could_not_leave_is_known_from_the_first_time_until_they_could() -> None:
    retries = Retries(Timeouts(eviction_s=60.0))
    for at in (NOW, NOW + 50):
        retries.note("rearrangement", "p", FAILED, at)
    assert (retries.stuck("rearrangement", NOW + 59), retries.stuck("rearrangement", NOW + 60)) == ([], ["p"])
    retries.keep("rearrangement", {"other"})
    assert retries.stuck("rearrangement", NOW + 600) == []
    retries.note("rearrangement", "p", FAILED, NOW)
    retries.note("rearrangement", "p", Outcome(Action.EVICT, "default/p", OutcomeStatus.DONE), NOW + 1)
    assert retries.stuck("rearrangement", NOW + 600) == []


def test_what_one_entry_of_the_queue_could_not_do_says_nothing_of_another() -> None:
    retries = Retries(Timeouts(eviction_s=60.0))
    retries.note("drain/a", "a", FAILED, NOW)
    retries.note("drain/b", "b", FAILED, NOW)
    retries.refuse("drain/b", "default/p", "it uses a GPU")
    retries.forget_all_but({"drain/a"})
    assert (retries.stuck("drain/a", NOW + 60), retries.stuck("drain/b", NOW + 60)) == (["a"], [])
    assert retries.refused("drain/b") is None
