"""A law: however a configuration is spoiled, it loads or is told about, in words of our own."""

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.config.document import Steps
from htas.config.loader import ConfigurationError, load_configuration
from tests.unit.config.files import SHIPPED

WHOLE = yaml.safe_load((SHIPPED / "htas.yaml").read_text())
WHOLE["flavours"] = yaml.safe_load((SHIPPED / "flavours/nectar.yaml").read_text())
JUNK = st.sampled_from(
    [None, True, -1, 0, 1.5, 10**30, "x", "", "é", "\0", "1Gi", ".nan", "10s", [], {}, [None], [{}], {"a": 1}]
)


def places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*steps, step)
        yield from places(inner, (*steps, step))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(places(WHOLE), key=str)), JUNK, min_size=1, max_size=3))
def test_a_spoiled_configuration_is_told_about(spoiled: dict[Steps, Any]) -> None:
    document = copy.deepcopy(WHOLE)
    for steps in sorted(spoiled, key=len, reverse=True):  # the innermost first, while its surroundings are there
        around = document
        for step in steps[:-1]:
            around = around[step]
        around[steps[-1]] = spoiled[steps]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "htas.yaml"
        file.write_text(yaml.safe_dump(document))
        try:
            load_configuration(file)
        except ConfigurationError as error:
            assert error.problems
            for problem in error.problems:
                assert problem.where.startswith(folder)
                assert "input should" not in problem.what.lower()
