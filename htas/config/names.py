"""Names and labels as Kubernetes checks them, so that a node HTAS asks for is never refused by the API server.

Source: Kubernetes documentation, "Labels and Selectors: Syntax and character set"; "Object Names and IDs".
"""

from __future__ import annotations

import re

from htas.model.extra_specs import EXAMPLE, is_of_nova
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL

NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
QUALIFIED_NAME = re.compile(rf"({_DOMAIN.pattern}/)?{NAME.pattern}")
SHORT_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MAX_DOMAIN = 253
_NAME_RULE = "up to 63 of A-Z a-z 0-9 - _ . that begin and end with a letter or digit"

OWN_PREFIX = "htas.io/"
WRITTEN_BY_HTAS = {
    HOSTNAME_LABEL: "remove it: every node has its own",
    INSTANCE_TYPE_LABEL: "remove it: it is the flavour's name",
    ZONE_LABEL: "remove it and write the flavour's zones instead",
}
"""Labels that HTAS gives its nodes itself; a configured value would be lost."""


def checked_short_name(text: str) -> str:
    """The name of a cluster or group: 30 characters at most, so that cluster-group-digest stays below 63."""
    if not SHORT_LABEL.fullmatch(text):
        raise ValueError(f"{text!r} is no name; write up to 30 of a-z 0-9 and -, not beginning or ending with -")
    return text


def checked_namespace(text: str) -> str:
    if not NAMESPACE.fullmatch(text):
        raise ValueError(f"{text!r} is no namespace; write up to 63 of a-z 0-9 and -, not beginning or ending with -")
    return text


def checked_qualified_name(text: str) -> str:
    """`name` or `domain/name`: the key of a label or taint."""
    domain, slash, name = text.rpartition("/")
    if slash and not (len(domain) <= _MAX_DOMAIN and _DOMAIN.fullmatch(domain)):
        raise ValueError(
            f"{text!r} is no key; what stands before / must be a domain in lower case, such as example.com"
        )
    if not NAME.fullmatch(name):
        raise ValueError(f"{text!r} is no key; write {_NAME_RULE}, after a domain and / if you wish")
    return text


def checked_node_key(text: str) -> str:
    """The key of a label or taint that nodes may be given, which those that HTAS writes itself are not."""
    if text.startswith(OWN_PREFIX):
        raise ValueError(f"{text!r} is HTAS's own; choose another prefix than {OWN_PREFIX}")
    if text in WRITTEN_BY_HTAS:
        raise ValueError(f"{text!r} is written by HTAS; {WRITTEN_BY_HTAS[text]}")
    return checked_qualified_name(text)


def checked_condition(text: str) -> str:
    """The type of a condition that says at True that something is wrong: none that is named ...Ready or ...Healthy."""
    if text == "Ready":
        raise ValueError(
            "'Ready' needs no repair: nodes that are not Ready are deleted after timeouts.ready; remove it"
        )
    if text.endswith(("Ready", "Healthy")) and not text.endswith(("NotReady", "Unhealthy", "NotHealthy")):
        raise ValueError(
            f"{text!r} is True on nodes that are well; write conditions that are True on those that are not"
        )
    return checked_qualified_name(text)


def checked_label_value(text: str) -> str:
    """The value of a label; it may be empty."""
    if text and not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no label value; write {_NAME_RULE}, or nothing")
    return text


def checked_node_name(text: str) -> str:
    """A flavour or zone: nodes bear it as the value of a label."""
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} cannot be a label's value, as it must; write {_NAME_RULE}")
    return text


def checked_extended_resource(text: str) -> str:
    """An extended resource (`domain/name`) or huge pages (`hugepages-2Mi`)."""
    if text in ("cpu", "memory", "pods", "ephemeral-storage"):
        key = "ephemeralStorage" if text == "ephemeral-storage" else text
        raise ValueError(f"{text!r} is no extended resource; write it as the flavour's own key {key}")
    if is_of_nova(text):
        raise ValueError(f"{text!r} is Nova's word; write the resource that its nodes report to Kubernetes, {EXAMPLE}")
    if not text.startswith("hugepages-") and "/" not in text:
        raise ValueError(f"{text!r} has no domain; write it as nodes report it, such as nvidia.com/gpu")
    return checked_qualified_name(text)
