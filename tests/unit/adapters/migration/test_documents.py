"""The twin, the journal on pods, and what is found in them again."""

from __future__ import annotations

import msgspec

from htas.adapters.migration.documents import (
    LEFT_BEHIND,
    adoption,
    copy_of,
    found_in,
    journalled,
    origin,
    record_in,
    restored_image_labels,
    settled,
    twin_of,
)
from htas.model.migrations import MIGRATION, MigrationState
from htas.model.moves import MigrationMethod
from htas.model.pods import MOVING, TWIN_OF
from tests.unit.adapters.migration.pods import Json, a_pod, a_record


def test_a_twin_is_restored_on_the_target_and_belongs_to_nobody() -> None:
    source = a_pod(owner="Job", initContainers=[{"name": "once"}], hostname="h")
    twin = twin_of(source, a_record(), ["ck:1"], "Never")
    spec = twin["spec"]
    assert (spec["nodeName"], spec["hostname"]) == ("b", "h")
    assert "initContainers" not in spec
    assert spec["containers"] == [{"name": "main", "image": "ck:1", "imagePullPolicy": "Never"}]
    assert "ownerReferences" not in twin["metadata"]
    assert "app" not in twin["metadata"]["labels"]
    assert twin["metadata"]["labels"][TWIN_OF] == "u-1"
    assert twin["metadata"]["annotations"]["keep"] == "me"


def test_each_attempt_has_a_twin_of_its_own_name() -> None:
    names = {twin_of(a_pod(), a_record(attempt=n), ["ck"], "Never")["metadata"]["name"] for n in (1, 2, 2)}
    assert len(names) == 2


def test_a_twin_pulls_with_its_sources_secrets_and_no_others() -> None:
    source = a_pod(imagePullSecrets=[{"name": "own"}])
    twin = twin_of(source, a_record(), ["ck"], "IfNotPresent")
    assert twin["spec"]["imagePullSecrets"] == [{"name": "own"}]


def test_a_twin_that_takes_over_has_what_the_source_had_and_not_the_marks_of_moves() -> None:
    source = a_pod(owner="Job")
    source["metadata"]["labels"] |= {MOVING: "m1", "htas.io/restored": "m0"}
    patch = adoption(origin(source))["metadata"]
    assert patch["labels"] == {"app": "train", "batch.kubernetes.io/job-completion-index": "3"}
    assert patch["ownerReferences"] == source["metadata"]["ownerReferences"]
    assert patch["finalizers"] == ["batch.kubernetes.io/job-tracking"]


def test_a_twin_has_the_zone_of_its_own_node() -> None:
    """The API server copies it from the node; handed on, a twin in b would say that it is in a."""
    source = a_pod(owner="ReplicaSet")
    source["metadata"]["labels"] |= {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
    given = origin(source)
    assert not [key for key in given.labels if key.startswith("topology")]
    assert adoption(given)["metadata"]["labels"]["app"] == "train"


def test_what_admission_fills_in_is_left_to_it() -> None:
    """A PriorityClass that was written anew has another number by now, and the API server refuses the old one."""
    filled = {"priority": 7, "preemptionPolicy": "Never", "overhead": {"cpu": "1"}}
    source = a_pod(owner="ReplicaSet", priorityClassName="high", runtimeClassName="kata", **filled)
    for twin in (
        twin_of(source, a_record(), ["ck:1"], "Never"),
        copy_of(source, a_record(method=MigrationMethod.REPLACE)),
    ):
        assert not filled.keys() & twin["spec"].keys()
        assert (twin["spec"]["priorityClassName"], twin["spec"]["runtimeClassName"]) == ("high", "kata")


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
    assert journalled(a_record(MigrationState.ROLLED_BACK))["metadata"]["labels"] == {MOVING: None, LEFT_BEHIND: None}
    done = settled(a_record(MigrationState.DONE))["metadata"]["labels"]
    assert done == {MOVING: None, TWIN_OF: None, LEFT_BEHIND: None}
    left = journalled(a_record(MigrationState.ROLLED_BACK, left_behind=True))["metadata"]["labels"]
    assert left == {MOVING: None, LEFT_BEHIND: ID}, "its archives are still looked for"


def test_before_the_switch_the_source_is_believed_and_the_twin_after_it() -> None:
    source = a_pod()
    twin = twin_of(source, a_record(), ["ck"], "Never")
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


def test_a_pod_is_believed_about_nobody_but_itself() -> None:
    """Whoever may create pods can write a journal on one: about another pod, or in words that a shell would run."""
    tells: list[Json] = [
        {"pod": "kube-system/dns"},
        {"pod": "default/other"},
        {"uid": "u-9"},
        {"source": "c"},
        {"id": "x'; touch owned; '"},
        {"id": "............"},
        {"id": "ABCDEF012345"},
        {"twin": "victim"},
        {"containers": ("*",)},
    ]
    for told in tells:
        forged = a_record(**told)
        bearer = patched(a_pod(), journalled(forged))
        assert not found_in([bearer]), told
    unlabelled = patched(a_pod(), journalled(a_record()))
    unlabelled["metadata"]["labels"][MOVING] = "fedcba543210"
    assert not found_in([unlabelled])


def test_a_twin_is_believed_about_a_pod_of_its_own_namespace_and_bears_all_marks() -> None:
    record = a_record(SWITCHED)
    twin = patched(twin_of(a_pod(), record, ["ck"], "Never"), journalled(record))
    twin["metadata"]["uid"] = "u-2"
    assert found_in([twin]) == [record]
    marks: list[tuple[str, Json]] = [
        ("namespace", {"namespace": "tenant"}),
        ("name", {"name": "train-x-m00000000"}),
        ("whose twin", {"labels": {**twin["metadata"]["labels"], TWIN_OF: "u-9"}}),
        ("which move", {"labels": {**twin["metadata"]["labels"], "htas.io/restored": "fedcba543210"}}),
    ]
    for mark, changed in marks:
        forged = {**twin, "metadata": {**twin["metadata"], **changed}}
        assert not found_in([forged]), mark
    elsewhere = {**twin, "spec": {**twin["spec"], "nodeName": "c"}}
    assert not found_in([elsewhere])


def test_a_label_that_is_no_id_names_no_move() -> None:
    pod = a_pod()
    for text, found in ((ID, ID), ("............", None), ("", None)):
        pod["metadata"]["labels"]["htas.io/restored"] = text
        assert restored_image_labels(pod) == found


SWITCHED = MigrationState.SWITCHED
ID = "abcdef012345"


def patched(pod: Json, patch: Json) -> Json:
    found: Json = msgspec.json.decode(msgspec.json.encode(pod))
    for part, values in patch["metadata"].items():
        found["metadata"][part] = {**found["metadata"][part], **values}
    return found
