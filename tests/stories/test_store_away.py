"""The remote store goes away in the middle of a busy hour: the cluster notices nothing, and history is whole."""

from __future__ import annotations

from pathlib import Path

from htas.adapters.write_behind.shipping import ShippingTiming
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.claims import ClaimState
from htas.profiler.accounts import total
from tests.far_store import Line, far_store
from tests.stories.play import Story, jobs
from tests.waiting import until


def story_on(store: WriteBehindStore) -> Story:
    story = Story(None, *jobs(25, every_s=30, runs_s=200))
    story.store.close()
    story.store = store
    story.crash()
    return story


def test_an_outage_and_a_restart_in_it_change_nothing_for_the_work(tmp_path: Path) -> None:
    far = far_store(tmp_path)
    line = Line(far)
    timing = ShippingTiming(first_pause_s=0.01, longest_pause_s=0.02, close_s=0.1)

    def opened(name: str) -> WriteBehindStore:
        return WriteBehindStore(str(tmp_path / name), line.opened, timing=timing)

    store = opened("buffer.db")
    assert store.catch_up(10.0)
    story = story_on(store).play(200)
    line.is_away = True
    story.play(500)
    store.close()
    store = opened("buffer.db")
    assert not store.catch_up(10.0)
    story.store = store
    story.crash()
    story.play(900)
    line.is_away = False
    until(lambda: not store.state().is_behind)
    story.play(8 * 3600).assert_over(25)
    assert store.flush(10.0)
    billing, now = story.policy.catalogue.billing, story.world.clock.now()
    assert total(far.bills(), billing, now) == story.world.ledger.nano_seconds(billing, now) > 0
    assert list(far.bills()) == list(store.bills())
    assert not [claim for claim in far.claims() if claim.state is not ClaimState.RELEASED]
    planned = [result.snapshot.taken_at for result in story.seen if result.outcomes]
    assert {found.at for found in far.cycles(limit=10**6)} >= set(planned)
    assert not [verb for verb, status in story.verbs if (verb, status) == ("adopt", "done")]
    store.close()
    far.close()


def test_a_daemon_on_another_machine_goes_on_from_the_store(tmp_path: Path) -> None:
    far = far_store(tmp_path)
    first = WriteBehindStore(str(tmp_path / "first.db"), Line(far).opened)
    assert first.catch_up(10.0)
    story = story_on(first).play(300)
    assert first.flush(10.0)
    first.close()
    second = WriteBehindStore(str(tmp_path / "second.db"), Line(far).opened)
    assert second.catch_up(10.0)
    assert (list(second.claims()), list(second.bills())) == (list(far.claims()), list(far.bills()))
    assert second.claims()
    story.store = second
    story.crash()
    story.play(8 * 3600).assert_over(25)
    assert not [verb for verb, _ in story.verbs if verb == "adopt"]
    second.close()
    far.close()
