"""The user data of a machine: the operator's template with what HTAS alone knows filled in.

Placeholders are `${htas.NAME}`: neither a shell nor cloud-init's own templates can take them for theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template

from htas.files import read_file
from htas.model.constraints import Taint
from htas.model.flavours import Flavour
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.ports import RefusedError

MOST_BYTES = 65_535
"""Nova's limit, after base64."""
_SELF_GIVEN = ("kubelet.kubernetes.io", "node.kubernetes.io")
_SELF_GIVEN_NAMES = frozenset(
    {"node.kubernetes.io/instance-type", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
)
_RESERVED = ("kubernetes.io", "k8s.io")


class _Placeholders(Template):
    """string.Template for `${htas.name}` alone; any other `$` stays as it is."""

    pattern = r"\$\{htas\.(?:(?P<braced>[a-z_][a-z0-9_.]*)\}|(?P<invalid>))|(?P<escaped>(?!))|(?P<named>(?!))"  # type: ignore[assignment] # typeshed has it compiled; string.Template compiles it


class UserData:
    """A template's file. It is checked when this is made, and read for each machine: it may be a Secret that rotates.

    `values` are the operator's own (`${htas.values.NAME}`); `token` mints what a machine joins with, once for each.
    Raises RefusedError where the file cannot be read, or names placeholders that nobody fills in.
    """

    def __init__(
        self,
        path: Path,
        values: Mapping[str, str],
        *,
        join: Mapping[str, str] | None = None,
        token: Callable[[str], str] | None = None,
    ) -> None:
        self._path = path
        self._fixed = {f"values.{name}": text for name, text in values.items()} | dict(join or {})
        self._token = token
        self._known = {*self._fixed, *MACHINE_FACTS, *(("kubeadm_token",) if token is not None else ())}
        self._read()

    def render(self, claim: str, group: str, flavour: Flavour, node: Node) -> str:
        """What the machine of a claim boots with."""
        template = self._read()
        facts = self._fixed | facts_of(claim, group, flavour, node)
        if self._token is not None and "kubeadm_token" in _names(template):
            facts["kubeadm_token"] = self._token(claim)
        text = _Placeholders(template).substitute(facts)
        if len(text.encode()) * 4 / 3 > MOST_BYTES:
            raise RefusedError(f"user data: {len(text.encode())} bytes are more than Nova takes (48 KiB)")
        return text

    def _read(self) -> str:
        try:
            template = read_file(self._path).decode()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise RefusedError(f"user data {self._path}: cannot be read: {why}") from error
        unknown = sorted(set(_names(template)) - self._known)
        if unknown:
            names = ", ".join(f"${{htas.{name}}}" for name in unknown)
            raise RefusedError(
                f"user data {self._path}: nothing is known for {names}; there is {', '.join(sorted(self._known))}"
            )
        return template


MACHINE_FACTS = ("node_name", "claim", "cluster", "group", "flavour", "zone", "labels", "taints", "max_pods")


def facts_of(claim: str, group: str, flavour: Flavour, node: Node) -> dict[str, str]:
    """Placeholders that differ from machine to machine; labels and taints as the kubelet's own options take them."""
    return {
        "node_name": node.name,
        "claim": claim,
        "cluster": node.cluster or "",
        "group": group,
        "flavour": flavour.name,
        "zone": node.labels.get("topology.kubernetes.io/zone", ""),
        "labels": ",".join(f"{key}={text}" for key, text in sorted(node.labels.items()) if may_give_itself(key)),
        "taints": ",".join(_taint(taint) for taint in node.taints),
        "max_pods": str(flavour.capacity.pods),
    }


def may_give_itself(label: str) -> bool:
    """Whether a kubelet starts with this label in --node-labels; HTAS sets the others when the node registers.

    Source: Kubernetes, "kubelet --node-labels" and the NodeRestriction admission plugin.
    """
    prefix, slash, _ = label.rpartition("/")
    if label == HOSTNAME_LABEL:
        return False  # the kubelet sets it by itself
    if not slash or label in _SELF_GIVEN_NAMES or _is_within(prefix, _SELF_GIVEN):
        return True
    return not _is_within(prefix, _RESERVED)


def _is_within(prefix: str, domains: tuple[str, ...]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect.value}"


def _names(template: str) -> list[str]:
    """What stands behind `${htas.`, well-formed or not: `${htas.node-name}` is a mistake, and not the shell's."""
    return re.findall(r"\$\{htas\.([^}\s\"']*)", template)
