"""Nova's words for devices, and the extended resources of nodes that they stand for."""

from __future__ import annotations

import pytest

from htas.model.extra_specs import devices, is_of_nova

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("specs", "found", "unknown"),
    [
        pytest.param({"pci_passthrough:alias": "a100:2"}, {GPU: 2}, [], id="two A100"),
        pytest.param({"pci_passthrough:alias": "nvidia-l40s:1"}, {GPU: 1}, [], id="a vendor and a card"),
        pytest.param({"pci_passthrough:alias": "H100"}, {GPU: 1}, [], id="one, without a count"),
        pytest.param({"pci_passthrough:alias": "mi300x:8"}, {"amd.com/gpu": 8}, [], id="AMD's"),
        pytest.param({"pci_passthrough:alias": "a30:1,a30-b:1"}, {GPU: 2}, [], id="two aliases"),
        pytest.param({"pci_passthrough:alias": "gpu:1"}, {}, ["pci_passthrough:alias: gpu:1"], id="a card nobody knows"),
        pytest.param({"pci_passthrough:alias": "nvme:1"}, {}, ["pci_passthrough:alias: nvme:1"], id="no card at all"),
        pytest.param({"pci_passthrough:alias": "a100:many"}, {}, ["pci_passthrough:alias: a100:many"], id="no count"),
        pytest.param({"resources:VGPU": "1"}, {GPU: 1}, [], id="a virtual GPU"),
        pytest.param({"resources:CUSTOM_NVIDIA_L4": "1"}, {GPU: 1}, [], id="a class of one's own that names the card"),
        pytest.param({"resources:CUSTOM_FPGA": "1"}, {}, ["resources:CUSTOM_FPGA: 1"], id="one that names none"),
        pytest.param({"resources1:VGPU": "2", "trait:CUSTOM_A": "required"}, {GPU: 2}, [], id="of a numbered group"),
        pytest.param({"resources:VCPU": "4", "hw:cpu_policy": "dedicated"}, {}, [], id="what is no device"),
    ],
)  # fmt: skip
def test_devices_of_a_flavour(specs: dict[str, str], found: dict[str, int], unknown: list[str]) -> None:
    resources, told = devices(specs)
    assert (dict(resources.extended), list(told)) == (found, unknown)


@pytest.mark.parametrize("key", ["resources:VGPU", "resources1:VGPU", "resources:CUSTOM_A", "pci_passthrough:alias"])
def test_words_that_are_novas(key: str) -> None:
    assert is_of_nova(key)


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "resources:VCPU", "hugepages-2Mi"])
def test_words_that_are_not(key: str) -> None:
    assert not is_of_nova(key)
