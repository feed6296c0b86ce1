"""ProviderPort on bare Nova: a claim is a server that bears its id in its metadata.

Nova has no idempotent create. A claim whose first request may have been lost (no answer came, or another process sent
it) is therefore looked for by name before it is asked for again, and only once Nova has had time to show it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from time import monotonic

from htas.adapters.openstack import wire
from htas.adapters.openstack.api import OpenStackApi
from htas.adapters.openstack.errors import HeldBackError, refused_order
from htas.adapters.openstack.listing import Listing
from htas.adapters.openstack.names import Names
from htas.adapters.openstack.nova import Nova
from htas.adapters.openstack.settings import Recipe
from htas.adapters.openstack.user_data import UserData
from htas.model.claims import Headroom, Instance, InstanceState, NodeClaim, Usage
from htas.model.flavours import Catalogue, Flavour, differences
from htas.model.nodes import Node
from htas.ports import CapacityError, HTASError, NotFoundError, PermanentError, RefusedError, TransientError

SETTLE_S = 10.0
"""How long Nova must have answered again before a request whose answer was lost counts as never received."""


class OpenStackProvider:
    """Implements ProviderPort. `start` begins to list the cloud, `close` ends that; `look` lists it once.

    `reached` is told of every effect, for the kill tests.
    """

    def __init__(
        self,
        api: OpenStackApi,
        cluster: str,
        recipe: Recipe,
        user_data: UserData | None,
        *,
        interval_s: float = 10.0,
        quick_s: float = 1.0,
        clock: Callable[[], float] = time.time,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._nova = Nova(api)
        self.names = Names(self._nova)
        self.listing = Listing(
            self._nova,
            self.names,
            cluster,
            interval_s=interval_s,
            quick_s=quick_s,
            has_network=bool(recipe.networks),
        )
        self._api = api
        self._cluster = cluster
        self._recipe = recipe
        self._user_data = user_data
        self._clock = clock
        self._reached = reached
        self._began_at = clock()
        self._lock = Lock()
        self._uncertain: dict[str, float | None] = {}
        """Claims whose request may have been received, and since when Nova answers that they are not there."""

    # The port.

    def create(self, claim: NodeClaim, flavour: Flavour, node: Node) -> Instance:
        known = self.listing.of_claim(claim.id) or self._found(claim)
        if known is not None:
            return known
        self._api.check_may_send("a server")  # before a token is made for it
        hints = {"group": self.names.server_group(self._recipe.server_group)} if self._recipe.server_group else {}
        order = self._order(claim, flavour, node)
        self._set_uncertain(claim.id, None)
        try:
            server_id = self._nova.create(order, hints)
        except HeldBackError:
            self._certain(claim.id)
            raise
        except TransientError:
            raise
        except CapacityError:
            self._certain(claim.id)
            self.listing.look_at_headroom()  # else each flavour in turn would be refused
            raise
        except HTASError as error:
            self._certain(claim.id)
            self.names.forget()
            raise refused_order(error) from error
        self._reached("openstack.server-created")
        self._certain(claim.id)
        made = Instance(
            id=server_id,
            name=claim.id,
            flavour=flavour.name,
            state=InstanceState.BUILDING,
            created_at=self._clock(),
            zone=claim.zone,
            cluster=self._cluster,
            claim=claim.id,
            group=claim.group,
        )
        self.listing.bought(made, flavour)
        return made

    def delete(self, instance_id: str) -> None:
        if self.listing.is_anothers(instance_id):
            raise PermanentError(f"server {instance_id} does not bear this cluster's name: it is not deleted")
        try:
            self._nova.delete(instance_id)
        except NotFoundError:
            self.listing.gone(instance_id)
            raise
        self._reached("openstack.server-deleted")
        self.listing.released(instance_id)

    def adopt(self, instance_id: str, cluster: str, claim: str, group: str) -> None:
        said = {wire.CLUSTER: cluster, wire.CLAIM: claim, wire.GROUP: group}
        self._nova.set_metadata(instance_id, said)
        self.listing.adopted(instance_id, cluster, claim, group)

    def instances(self) -> Sequence[Instance]:
        return self.listing.instances()

    def headroom(self) -> Headroom:
        return self.listing.headroom()

    def usage(self, since: float, until: float) -> Sequence[Usage] | None:
        told = (wire.usage_of(each) for each in self._nova.usage(since, until))
        return [each for each in told if each is not None]

    def changes(self) -> int:
        return self.listing.changes

    def on_change(self, wake: Callable[[], None]) -> None:
        self.listing.on_change = wake

    def problems(self, catalogue: Catalogue) -> list[str]:
        """What configuration and price file name that the cloud lacks, or has otherwise; raises what it answers."""
        recipe, told = self._recipe, []
        looks: list[Callable[[], object]] = [partial(self.names.image, recipe.image)]
        looks += [partial(self.names.network, name) for name in recipe.networks]
        if recipe.server_group is not None:
            looks.append(partial(self.names.server_group, recipe.server_group))
        for look in looks:
            try:
                look()
            except RefusedError as error:
                told.append(str(error))
        return told + differences(catalogue, [wire.size_of(each) for each in self._nova.flavours()])

    # Its life.

    def start(self) -> None:
        self.listing.start()

    def look(self) -> None:
        """List the cloud once; raises what it answers."""
        self.listing.look()

    def close(self) -> None:
        self.listing.close()
        self._api.close()

    # A request that may have been lost.

    def _found(self, claim: NodeClaim) -> Instance | None:
        """The machine of a claim that was asked for before; None: there is none, and none is on its way.

        Raises TransientError while that cannot be known yet.
        """
        with self._lock:
            if claim.id not in self._uncertain and claim.created_at >= self._began_at:
                return None  # nobody has asked for it before
        try:
            servers = self._nova.servers_named(claim.id)
        except TransientError:
            self._set_uncertain(claim.id, None)
            raise
        for server in servers:
            instance = wire.instance_of(server)
            is_it = (instance.cluster, instance.claim) == (self._cluster, claim.id)
            if is_it and instance.state is not InstanceState.DELETING:
                self.listing.found(instance)
                self._certain(claim.id)
                return instance
        now = monotonic()
        since = self._uncertain.get(claim.id)
        if since is None:
            since = now
            self._set_uncertain(claim.id, now)
        if now - since < SETTLE_S:
            left_s = SETTLE_S - (now - since)
            raise TransientError(f"an earlier request may be under way still: requested again in {left_s:.0f} s")
        return None

    def _set_uncertain(self, claim_id: str, since: float | None) -> None:
        with self._lock:
            self._uncertain[claim_id] = since

    def _certain(self, claim_id: str) -> None:
        with self._lock:
            self._uncertain.pop(claim_id, None)

    # What is asked for.

    def _order(self, claim: NodeClaim, flavour: Flavour, node: Node) -> dict[str, object]:
        """The server as Nova's create wants it (Compute API, "Create server")."""
        recipe = self._recipe
        metadata = {
            **dict(recipe.metadata),
            wire.CLUSTER: self._cluster,
            wire.CLAIM: claim.id,
            wire.GROUP: claim.group,
        }
        networks = [{"uuid": self.names.network(name)} for name in recipe.networks]
        order: dict[str, object] = {
            "name": claim.id,
            "flavorRef": self.names.flavour(flavour.name),
            "metadata": metadata,
            "networks": networks or "none",
            **self._disk(),
        }
        if claim.zone is not None:
            order["availability_zone"] = claim.zone
        if recipe.key_pair is not None:
            order["key_name"] = recipe.key_pair
        if recipe.security_groups:
            order["security_groups"] = [{"name": name} for name in recipe.security_groups]
        if recipe.has_config_drive:
            order["config_drive"] = True
        if self._user_data is not None:
            text = self._user_data.render(claim.id, claim.group, flavour, node)
            order["user_data"] = base64.b64encode(text.encode()).decode()
        return order

    def _disk(self) -> dict[str, object]:
        """The image on the machine's own disk, or on a volume that goes with the machine."""
        image, volume = self.names.image(self._recipe.image), self._recipe.boot_volume
        if volume is None:
            return {"imageRef": image}
        device: dict[str, object] = {
            "boot_index": 0,
            "uuid": image,
            "source_type": "image",
            "destination_type": "volume",
            "volume_size": volume.size_gib,
            "delete_on_termination": True,
        }
        if volume.type is not None:
            device["volume_type"] = volume.type
        return {"block_device_mapping_v2": [device]}
