"""Volumes of machines that are not launched yet, where no node of their kind shows them."""

from __future__ import annotations

from pydantic import Field, field_validator

from htas.config.values import Count, LabelValue, NodeKey, NodeName, Section, Text, each_once
from htas.model.volumes import CINDER_ZONE_LABEL, TopologyLabel, VolumeRules


class TopologySetting(Section):
    """A label by which a CSI driver names the zone of a node, and so what volumes it reaches."""

    key: NodeKey = Field(description="The label, such as topology.cinder.csi.openstack.org/zone.")
    zones: dict[NodeName, LabelValue] = Field(
        default_factory=dict, description="Its value by a flavour's zone; zones left out name themselves."
    )
    otherwise: LabelValue | None = Field(
        default=None, description="Its value where no zone is requested. null: read from existing nodes."
    )

    def model(self) -> TopologyLabel:
        return TopologyLabel(self.key, self.zones, self.otherwise)


class VolumesSetting(Section):
    """What CSI drivers report on a new machine. Labels of existing nodes of the same group and zone come first."""

    topology: tuple[TopologySetting, ...] = Field(
        default=(TopologySetting(key=CINDER_ZONE_LABEL),),
        description="Labels that drivers give to nodes. Cinder's, whose zones are Nova's.",
    )
    attach_limits: dict[Text, Count] = Field(
        default_factory=dict,
        description="Volumes each driver attaches to a machine of a flavour without nodes. None: the least shown.",
    )

    @field_validator("topology")
    @classmethod
    def _each_once(cls, labels: tuple[TopologySetting, ...]) -> tuple[TopologySetting, ...]:
        each_once((label.key for label in labels), "write all its zones in one entry")
        return labels

    def model(self) -> VolumeRules:
        limits = tuple(sorted(self.attach_limits.items()))
        return VolumeRules(tuple(label.model() for label in self.topology), limits)
