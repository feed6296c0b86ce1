"""Nova's words for devices: what the extra specs of a cloud's flavour say of the extended resources of its nodes.

Nova names a device as its operator does (`pci_passthrough:alias: a100:2`), Kubernetes as the device plugin does
(`nvidia.com/gpu: 2`). Where the alias is that of a known card the one tells the other; else a person has to say.

Source: Nova, "Flavors: extra specs", https://docs.openstack.org/nova/latest/configuration/extra-specs.html
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from htas.model.resources import Resources

NVIDIA, AMD, INTEL = "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"
_CARDS = (
    (
        NVIDIA,
        r"nvidia|geforce|quadro|tesla|rtx\d*|gtx\d*|grid|[ahlv]\d{1,3}s?|[bg]b?\d{3}|gh200|[pt]4|p100|t4g|k[48]0|m60",
    ),
    (AMD, r"amd|radeon|instinct|mi\d{2,3}x?"),
    (INTEL, r"intel|flex\d*|i915"),
)
"""How aliases of a vendor's cards are mostly called: a100, nvidia-l40s, rtx6000, mi300x."""
_WORD = re.compile(r"[a-z0-9]+")
PCI_ALIAS = "pci_passthrough:alias"
RESOURCES = re.compile(r"resources(?P<group>[A-Za-z0-9_-]*):(?P<kind>.+)")
VGPU, PGPU, CUSTOM = "VGPU", "PGPU", "CUSTOM_"
EXAMPLE = "extended: {nvidia.com/gpu: 1}"


def is_of_nova(key: str) -> bool:
    """Whether a key is one of Nova's words for devices."""
    found = RESOURCES.fullmatch(key)
    return key == PCI_ALIAS or (found is not None and _is_device(found["kind"]))


def devices(specs: Mapping[str, str]) -> tuple[Resources, tuple[str, ...]]:
    """The extended resources that extra specs tell of, and those specs that do not say which resource they are."""
    found: Counter[str] = Counter()
    open_ones: list[str] = []
    for key, value in sorted(specs.items()):
        named = RESOURCES.fullmatch(key)
        if key == PCI_ALIAS:
            asked = [part.strip() for part in value.split(",")]
        elif named is not None and _is_device(named["kind"]):
            asked = [f"{'nvidia' if named['kind'] == VGPU else named['kind'].removeprefix(CUSTOM)}:{value}"]
        else:
            continue
        for part in asked:
            name, _, number = part.partition(":")
            resource, count = resource_of(name), _count(number)
            if resource is None or count is None:
                open_ones.append(f"{key}: {value}")
                break
            found[resource] += count
    return Resources.of(found), tuple(open_ones)


def resource_of(name: str) -> str | None:
    """The extended resource of a card that is called so; None: it may be anything."""
    words = _WORD.findall(name.lower())
    return next((vendor for vendor, cards in _CARDS if any(re.fullmatch(cards, word) for word in words)), None)


def _is_device(kind: str) -> bool:
    """Whether a resource class is no part of every machine; VCPU, MEMORY_MB and DISK_GB are."""
    return kind in (VGPU, PGPU) or kind.startswith(CUSTOM)


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 and int(text) else None if text else 1
