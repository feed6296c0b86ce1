"""Versions of kubelets: which comes before which."""

from __future__ import annotations

import pytest

from htas.model.versions import is_older


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        pytest.param("v1.33.4", "v1.34", True, id="a minor version before"),
        pytest.param("v1.34.0", "v1.34", False, id="its first release"),
        pytest.param("v1.34.1", "v1.34.2", True, id="a release before"),
        pytest.param("v1.34.2", "v1.34.2", False, id="the same"),
        pytest.param("v1.35.0", "v1.34.2", False, id="newer"),
        pytest.param("v1.9.9", "v1.10", True, id="in numbers, not in letters"),
        pytest.param("v1.34.10", "v1.34.9", False, id="releases too"),
        pytest.param("v1.34.1+k3s1", "v1.34.1", False, id="whose build it is is not compared"),
        pytest.param("v1.34.1-eks-113cf36", "v1.34.1", False, id="though semver has a hyphen for what comes before"),
        pytest.param("v1.33.1+rke2r1", "v1.34", True, id="an older build of somebody's"),
        pytest.param("", "v1.34", False, id="not told"),
        pytest.param("fake", "v1.34", False, id="no version: KWOK's"),
    ],
)
def test_older(version: str, than: str, older: bool) -> None:
    assert is_older(version, than) is older
