"""The twin, the journal on pods, and what is found in them again."""

from __future__ import annotations

import msgspec

from htas.adapters.checkpoint.documents import found_in, journalled, origin, record_in, settled, twin_of
from htas.adapters.twins import adoption
from htas.model.migrations import MIGRATION, MigrationState
from htas.model.pods import MOVING, TWIN_OF
from tests.unit.adapters.checkpoint.pods import Json, a_pod, a_record


def test_a_twin_is_restored_on_the_target_and_belongs_to_nobody() -> None:
    source = a_pod(owner="Job", initContainers=[{"name": "once"}], priority=7)
    twin = twin_of(source, a_record(), ["ck:1"], "Never")
    spec = twin["spec"]
    assert (spec["nodeName"], spec["priority"]) == ("b", 7)
    assert "initContainers" not in spec
    assert spec["containers"] == [{"name": "main", "image": "ck:1", "imagePullPolicy": "Never"}]
    assert "ownerReferences" not in twin["metadata"]
    assert "app" not in twin["metadata"]["labels"]
    assert twin["metadata"]["labels"][TWIN_OF] == "u-1"
    assert twin["metadata"]["annotations"]["keep"] == "me"


def test_each_attempt_has_a_twin_of_its_own_name() -> None:
    names = {twin_of(a_pod(), a_record(attempt=n), ["ck"], "Never")["metadata"]["name"] for n in (1, 2, 2)}
    assert len(names) == 2


def test_a_pull_secret_is_added_to_those_that_are_there() -> None:
    source = a_pod(imagePullSecrets=[{"name": "own"}])
    twin = twin_of(source, a_record(), ["ck"], "IfNotPresent", "pull")
    assert twin["spec"]["imagePullSecrets"] == [{"name": "own"}, {"name": "pull"}]


def test_a_twin_that_takes_over_has_what_the_source_had_and_not_the_marks_of_moves() -> None:
    source = a_pod(owner="Job")
    source["metadata"]["labels"] |= {MOVING: "m1", "htas.io/restored": "m0"}
    patch = adoption(origin(source, a_record()))["metadata"]
    assert patch["labels"] == {"app": "train", "batch.kubernetes.io/job-completion-index": "3"}
    assert patch["ownerReferences"] == source["metadata"]["ownerReferences"]
    assert patch["finalizers"] == ["batch.kubernetes.io/job-tracking"]


def test_what_is_journalled_is_read_again() -> None:
    record = a_record(archive="/a.tar", digest="d")
    assert record_in(patched(a_pod(), journalled(record))) == record


def test_a_pod_without_a_journal_or_with_a_spoiled_one_is_not_moving() -> None:
    assert record_in(a_pod()) is None
    for text in ("", "{}", "[1]", '{"id": 3}'):
        spoiled = a_pod()
        spoiled["metadata"]["annotations"][MIGRATION] = text
        assert record_in(spoiled) is None


def test_a_move_that_is_over_is_not_looked_for() -> None:
    assert journalled(a_record(MigrationState.ROLLED_BACK))["metadata"]["labels"] == {MOVING: None}
    done = settled(a_record(MigrationState.DONE))["metadata"]["labels"]
    assert done == {MOVING: None, TWIN_OF: None}


def test_before_the_switch_the_source_is_believed_and_the_twin_after_it() -> None:
    source, twin = a_pod(), a_pod()
    twin["metadata"]["uid"] = "u-2"
    early, late, switched = (
        a_record(state) for state in (MigrationState.TRANSFERRED, MigrationState.RESTORED, SWITCHED)
    )
    before = [patched(twin, journalled(early)), patched(source, journalled(late))]
    assert found_in(before) == found_in(before[::-1]) == [late]
    after = [patched(source, journalled(late)), patched(twin, journalled(switched))]
    assert found_in(after) == found_in(after[::-1]) == [switched]
    assert found_in([patched(twin, journalled(early))]) == [early], "the source is gone"
    assert not found_in([patched(source, journalled(a_record(MigrationState.DONE)))])


SWITCHED = MigrationState.SWITCHED


def patched(pod: Json, patch: Json) -> Json:
    found: Json = msgspec.json.decode(msgspec.json.encode(pod))
    for part, values in patch["metadata"].items():
        found["metadata"][part] = {**found["metadata"][part], **values}
    return found
