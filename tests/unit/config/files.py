"""A small configuration, the ways to spoil it, and what is told about it."""

from pathlib import Path

import pytest

from htas.config.loader import ConfigurationError, load_configuration

SHIPPED = Path(__file__).parents[3] / "config"
GOOD = """\
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: test
flavours: {flavours: [{name: small, cpu: 1, memory: 1Gi, pricePerHour: "0.1"}]}
nodeGroups: [{name: any}]
"""


def group(settings: str) -> str:
    """GOOD with settings of its only group."""
    return GOOD.replace("{name: any}", f"{{name: any, {settings}}}")


def flavour(settings: str) -> str:
    """GOOD with settings of its only flavour."""
    return GOOD.replace("memory: 1Gi", f"memory: 1Gi, {settings}")


def without(key: str, replacement: str = "") -> str:
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"{key}:")]
    return "\n".join([*lines, replacement])


def told(tmp_path: Path, text: str | bytes) -> list[str]:
    """Every problem of a configuration, files named without their folder."""
    file = tmp_path / "htas.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError) as raised:
        load_configuration(file)
    problems = [f"{problem.where}: {problem.what}" for problem in raised.value.problems]
    assert str(raised.value) == "\n".join(problems)
    return [line.replace(f"{tmp_path}/", "") for line in problems]
