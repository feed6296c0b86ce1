from pathlib import Path

import pytest

from tests.unit.config.files import GOOD, flavour, group, told, without

KEY_RULE = (
    "write up to 63 of A-Z a-z 0-9 - _ . that begin and end with a letter or digit, after a domain and / if you wish"
)
FLAVOUR = "htas.yaml:4 flavours.flavours[0]"
GROUP = "htas.yaml:5 nodeGroups[0]"

KEYS = [
    pytest.param(without("cluster"), "htas.yaml:1 cluster: missing; this key is required", id="a required key"),
    pytest.param(
        GOOD + "nodeGroup: []", "htas.yaml:6 nodeGroup: unknown key; did you mean nodeGroups?", id="a key misspelt"
    ),
    pytest.param(
        group("cleaning: {utilisationThreshold: 0.5}"),
        f"{GROUP}.cleaning.utilisationThreshold: unknown key; did you mean utilizationThreshold?",
        id="a key misspelt in a group",
    ),
    pytest.param(
        group("minNodes: 1, mode: approve"),
        f"{GROUP}.mode: is no key here; it belongs at the top of the file",
        id="a key of the file in a group",
    ),
    pytest.param(
        GOOD + "maxNodes: 3",
        "htas.yaml:6 maxNodes: is no key here; it belongs in limits",
        id="a key of a section at the top of the file",
    ),
    pytest.param(
        flavour("price: '0.1'"),
        f"{FLAVOUR}.price: unknown key; did you mean pricePerHour?",
        id="the beginning of a key",
    ),
    pytest.param(
        GOOD + "migration: {registry: {pullSecret: pull}}",
        "htas.yaml:6 migration.registry.pullSecret: is no key any more; remove it, and give the registry's credentials to "
        "kubelets (docs/migration.md)",
        id="a key of before",
    ),
    pytest.param(
        GOOD + "migration: {scp: {route: direct}}",
        "htas.yaml:6 migration.scp.route: is no key any more; remove it: archives go from node to node, or write "
        "migration.transfer: registry",
        id="the way of archives",
    ),
    pytest.param(
        GOOD + "notices: [{name: chat, url: 'https://chat.example/7'}]",
        "htas.yaml:6 notices: is no key any more; remove it, and have Alertmanager send the chart's alerts (docs/alerting.md)",
        id="notices",
    ),
    pytest.param(GOOD + "zebra: {}", "htas.yaml:6 zebra: unknown key; remove it", id="a key like no other"),
    pytest.param(
        GOOD + "scheduler_name: x",
        "htas.yaml:6 scheduler_name: unknown key; did you mean schedulerName?",
        id="a Python name for a key",
    ),
    pytest.param(
        GOOD + "cluster: other",
        "htas.yaml:6 cluster: is written twice, first in line 3; remove one",
        id="a key written twice",
    ),
    pytest.param(
        group("minNodes: 1, minNodes: 2"),
        f"{GROUP}.minNodes: is written twice, first in line 5; remove one",
        id="a key written twice in a group",
    ),
    pytest.param(
        GOOD + "cycles:\n",
        "htas.yaml:6 cycles: found null where a mapping of keys to values belongs; write its keys or remove it",
        id="a section with nothing in it",
    ),
    pytest.param(
        without("nodeGroups", "nodeGroups: {name: any}"),
        "htas.yaml:5 nodeGroups: found a mapping where a list belongs; write it as [...] or remove the key",
        id="a mapping for a list",
    ),
    pytest.param(
        without("nodeGroups", "nodeGroups: []"), "htas.yaml:5 nodeGroups: is empty; write at least one", id="no groups"
    ),
    pytest.param(
        GOOD.replace("v1alpha1", "v2"),
        "htas.yaml:1 apiVersion: found 'htas.io/v2'; write htas.io/v1alpha1; did you mean htas.io/v1alpha1?",
        id="another version",
    ),
]

OPENSTACK = GOOD + "provider: {openstack: {image: x, networks: []%s}}"
OF_OPENSTACK = "htas.yaml:6 provider.openstack"
MACHINES = [
    pytest.param(
        GOOD + "provider: {openstack: {networks: [a]}}",
        f"{OF_OPENSTACK}.image: missing; this key is required",
        id="machines of nothing",
    ),
    pytest.param(
        OPENSTACK % ", metadata: {htas.claim: x}",
        f"{OF_OPENSTACK}.metadata: 'htas.claim': keys that begin with htas. are written by HTAS itself; choose another",
        id="metadata that is HTAS's own",
    ),
    pytest.param(
        OPENSTACK % ", metadata: {a/b: x}",
        f"{OF_OPENSTACK}.metadata: 'a/b' is no key that Nova takes; write up to 255 of A-Z a-z 0-9 . : _ -",
        id="metadata that Nova refuses",
    ),
    pytest.param(
        OPENSTACK.replace("[]", "[a, a]") % "",
        f"{OF_OPENSTACK}.networks: names one of them twice; remove it",
        id="a network twice",
    ),
    pytest.param(
        OPENSTACK % ", userData: {template: t, kubeadm: {apiServer: here}}",
        f"{OF_OPENSTACK}.userData.kubeadm.apiServer: 'here' is no host:port, as in 192.0.2.10:6443",
        id="an API server without its port",
    ),
    pytest.param(
        group("cleaning: {migration: checkpoint}") + "provider: {openstack: {image: x, networks: []}}",
        f"{GROUP}.cleaning.migration: is for simulated nodes; for real ones write evict, replace, "
        "kubelet-checkpoint or command",
        id="checkpoints that nobody restores",
    ),
    pytest.param(
        group("cleaning: {migration: kubelet-checkpoint}")
        + "migration: {scp: {user: u, identityFile: key, knownHostsFile: hosts}}\nprovider: {sandbox: {}}",
        f"{GROUP}.cleaning.migration: is for real nodes; in the sandbox write checkpoint, which models it, replace or evict",
        id="kubelets in the sandbox",
    ),
    pytest.param(
        group("cleaning: {migration: kubelet-checkpoint}")
        + "migration: {scp: {identityFile: key}}\nprovider: {kwok: {}}",
        "htas.yaml:6 migration.scp: transfer: scp needs user, knownHostsFile; write them",
        id="scp without a user and host keys",
    ),
    pytest.param(
        group("cleaning: {migration: kubelet-checkpoint}")
        + "migration: {transfer: registry, registry: {agentPort: 1}}\nprovider: {kwok: {}}",
        "htas.yaml:6 migration.registry: transfer: registry needs url, agentTokenFile; write them",
        id="a registry that is nowhere",
    ),
    pytest.param(
        GOOD + "migration: {transfer: registry, registry: {url: 'registry.example:5000'}}",
        "htas.yaml:6 migration.registry.url: 'registry.example:5000' is no https://HOST or https://HOST:PORT",
        id="a registry's address without its scheme",
    ),
    pytest.param(
        GOOD + "migration: {transfer: registry, registry: {url: 'http://registry.example:5000'}}",
        "htas.yaml:6 migration.registry.url: sends what processes hold in memory in the clear; write https://, or add insecure: true",
        id="a registry that is asked in the clear",
    ),
    *(
        pytest.param(
            GOOD + f"migration: {{transfer: registry, registry: {{pullFrom: '{name}'}}}}",
            f"htas.yaml:6 migration.registry.pullFrom: '{name}' is no HOST[:PORT]/PATH without scheme and tag, the path in small letters",
            id=f"an image's name {what}",
        )
        for name, what in (
            ("https://registry.example/htas", "with a scheme"),
            ("registry.example", "without a path"),
            ("registry.example/HTAS", "in capitals"),
            ("registry.example/htas:1", "with a tag"),
            ("registry.example/htas/", "that goes on"),
        )
    ),
    pytest.param(
        GOOD + "migration: {registry: {agentTokenFile: token}}",
        "htas.yaml:6 migration.registry.agentTokenFile: has no effect with transfer: scp; remove it, or write transfer: registry",
        id="a key for the registry, where ssh is used",
    ),
    pytest.param(
        GOOD + "migration: {transfer: registry, scp: {port: 2222}}",
        "htas.yaml:6 migration.scp.port: has no effect with transfer: registry; remove it, or write transfer: scp",
        id="a key for ssh, where a registry is used",
    ),
    pytest.param(
        GOOD + "migration: {commands: {checkpoint: c}}",
        "htas.yaml:6 migration.commands: cleaning.migration: command needs transfer, restore, abort; write them",
        id="a command by itself",
    ),
    pytest.param(
        group("cleaning: {migration: command}")
        + "migration: {commands: {checkpoint: c, restore: r}}\nprovider: {kwok: {}}",
        "htas.yaml:6 migration.commands: cleaning.migration: command needs transfer, abort; write them",
        id="commands that are not there",
    ),
    pytest.param(
        GOOD + "migration: {attempts: 0}",
        "htas.yaml:6 migration.attempts: '0' is too small; write at least 1",
        id="no attempt",
    ),
    pytest.param(
        OPENSTACK % ", userData: {template: t, kubeadm: {apiServer: 'a:1', tokenTtl: 15m}}",
        f"{OF_OPENSTACK}.userData.kubeadm.tokenTtl: tokens end before timeouts.launch and registration do; write 1200s or more",
        id="tokens that end before a machine must have joined",
    ),
    pytest.param(
        OPENSTACK % ", userData: {template: t, values: {Token: x}}",
        f"{OF_OPENSTACK}.userData.values: 'Token' is no name for a placeholder; write a-z 0-9 and _",
        id="a placeholder that cannot be named",
    ),
]

NOT_YET = [
    pytest.param(
        GOOD + "provider: {kwok: {}, sandbox: {}}",
        "htas.yaml:6 provider: names sandbox and kwok; write one, sandbox or kwok or openstack or none",
        id="kwok beside the sandbox",
    ),
    pytest.param(
        group("autoscaling: {budget: 5s}"),
        f"{GROUP}.autoscaling.budget: has an effect with `algorithm: cheapest-mix` alone; write that or remove it",
        id="a budget for the greedy, which searches for nothing",
    ),
    pytest.param(
        GOOD + "provider: {}",
        "htas.yaml:6 provider: names no provider; write one, sandbox or kwok or openstack or none",
        id="no provider chosen",
    ),
]

VALUES = [
    pytest.param(
        GOOD + "cycles: {scheduling: 20}",
        "htas.yaml:6 cycles.scheduling: '20' has no unit; write it with ms, s, m, h or d, such as 20s",
        id="a duration without a unit",
    ),
    pytest.param(
        GOOD + "cycles: {scheduling: soon}",
        "htas.yaml:6 cycles.scheduling: 'soon' is not a duration; write a number with ms, s, m, h or d, "
        "such as 20s or 1h30m",
        id="no duration",
    ),
    pytest.param(
        GOOD + "cycles: {scheduling: 0s}",
        "htas.yaml:6 cycles.scheduling: '0s' is too small; write more than 0",
        id="a cycle of no length",
    ),
    pytest.param(
        GOOD + "cycles: {cleaning: 999999h}",
        "htas.yaml:6 cycles.cleaning: '999999h' is longer than ten years; write less",
        id="a duration beyond reason",
    ),
    pytest.param(
        GOOD + "cycles: {batchIdle: 3s, batchMax: 2s}",
        "htas.yaml:6 cycles.batchMax: is shorter than batchIdle; raise it, or write 0s for no cycles on events",
        id="a window that ends before it may",
    ),
    pytest.param(
        GOOD + "timeouts: {backoffInitial: 1h}",
        "htas.yaml:6 timeouts.backoffMax: is shorter than backoffInitial; raise it or lower backoffInitial",
        id="a backoff above its maximum",
    ),
    pytest.param(
        GOOD + "runLengths: {quantile: 0}",
        "htas.yaml:6 runLengths.quantile: '0' is too small; write more than 0",
        id="an estimate within which nothing ends",
    ),
    pytest.param(
        GOOD + "runLengths: {quantile: 50}",
        "htas.yaml:6 runLengths.quantile: '50' is too great; write at most 1",
        id="a quantile in per cent",
    ),
    pytest.param(
        GOOD + "runLengths: {minRuns: 65}",
        "htas.yaml:6 runLengths.minRuns: '65' is too great; write at most 64",
        id="more runs wanted than are remembered",
    ),
    pytest.param(
        GOOD + "runLengths: {halfLife: 0}",
        "htas.yaml:6 runLengths.halfLife: '0' is too small; write more than 0",
        id="runs that count for nothing at once",
    ),
    *(
        pytest.param(
            GOOD.replace("memory: 1Gi", f"memory: {wrote}"),
            f"{FLAVOUR}.memory: '{wrote}' is {size} bytes, which is no machine's memory; did you mean {meant}?",
            id=why,
        )
        for wrote, size, meant, why in (
            ("4", 4, "4Gi", "memory in gibibytes without the unit"),
            ("16384", 16384, "16384Mi", "memory in mebibytes without the unit"),
            ("16777216", 16777216, "16777216Ki", "memory in kibibytes without the unit"),
            ("32Mi", 33554432, "32Gi", "memory with a unit too small for a machine"),
        )
    ),
    pytest.param(
        GOOD.replace("cpu: 1,", "cpu: 4u,"),
        f"{FLAVOUR}.cpu: '4u' is less than a thousandth of a core; write cores, such as 4 or 1500m",
        id="a machine without a whole milli-core",
    ),
    pytest.param(
        flavour("reserved: {memory: 1GB}"),
        f"{FLAVOUR}.reserved.memory: '1GB' is not a quantity; write a number, alone or with "
        "n u m k M G T P E Ki Mi Gi Ti Pi Ei",
        id="a bad quantity",
    ),
    pytest.param(
        GOOD + "limits: {maxCpu: -1}", "htas.yaml:6 limits.maxCpu: '-1' is negative; write 0 or more", id="-1 core"
    ),
    pytest.param(
        GOOD.replace("cpu: 1,", "cpu: 0,"), f"{FLAVOUR}.cpu: '0' is too small; write more than 0", id="no cpu"
    ),
    pytest.param(
        GOOD.replace("1Gi", "1e999"),
        f"{FLAVOUR}.memory: '1e999' is more than any machine has; write less than 1Ei",
        id="more memory than there is",
    ),
    pytest.param(
        group("cleaning: {utilizationThreshold: 1.5}"),
        f"{GROUP}.cleaning.utilizationThreshold: '1.5' is too great; write at most 1",
        id="a threshold above one",
    ),
    pytest.param(
        group("cleaning: {utilizationThreshold: .nan}"),
        f"{GROUP}.cleaning.utilizationThreshold: '.nan' is not a decimal number; write one such as 0.5",
        id="a threshold that is no number",
    ),
    pytest.param(
        group("minNodes: true"), f"{GROUP}.minNodes: found true where a whole number belongs", id="true for a count"
    ),
    pytest.param(
        group("minNodes: 1.5"),
        f"{GROUP}.minNodes: '1.5' is not a whole number; write digits alone, such as 3",
        id="half a node",
    ),
    pytest.param(
        group("cleaning: {enabled: yes}"),
        f"{GROUP}.cleaning.enabled: 'yes' is neither true nor false; write one of them, without quotes",
        id="yes for true",
    ),
    pytest.param(
        group("cleaning: {migration: live}"),
        f"{GROUP}.cleaning.migration: found 'live'; write evict, checkpoint, kubelet-checkpoint, command or replace",
        id="an unknown method",
    ),
    pytest.param(
        GOOD.replace("cluster: test", "cluster: Demo_"),
        "htas.yaml:3 cluster: 'Demo_' is no name; write up to 30 of a-z 0-9 and -, not beginning or ending with -",
        id="a cluster's name",
    ),
    pytest.param(
        GOOD.replace("cluster: test", "cluster:"),
        "htas.yaml:3 cluster: has no value; write one or remove the key",
        id="a key without a value",
    ),
]

PRICES = [
    pytest.param("-0.1", "'-0.1' is negative", id="negative"),
    pytest.param(".nan", "'.nan' is not a finite number", id="NaN as YAML has it"),
    pytest.param("NaN", "'NaN' is not a finite number", id="NaN"),
    pytest.param("-.inf", "'-.inf' is not a finite number", id="infinite"),
    pytest.param("free", "'free' is not a decimal number", id="a word"),
    pytest.param("0.0000000001", "'0.0000000001' is no price an hour: it has too many places", id="next to nothing"),
    pytest.param("0.1234567891", "'0.1234567891' has more than nine decimal places", id="too fine to hold exactly"),
    pytest.param('"NaN"', "'NaN' is not a finite number", id="NaN in quotes"),
]

GROUPS = [
    pytest.param(
        without("nodeGroups", "nodeGroups: [{name: a}, {name: a}]"),
        "htas.yaml:5 nodeGroups[1].name: nodeGroups[0] is named 'a' already; give each group its own name",
        id="two groups of one name",
    ),
    pytest.param(
        group("flavours: [smal]"),
        f"{GROUP}.flavours[0]: 'smal' matches no flavour of the price file; did you mean small?",
        id="a pattern near a flavour",
    ),
    pytest.param(
        group("flavours: ['*', 'gpu-*']"),
        f"{GROUP}.flavours[1]: 'gpu-*' matches no flavour of the price file; write a name from it, or * for all",
        id="a pattern of nothing beside one of everything",
    ),
    pytest.param(
        group('maxPricePerHour: "0.05"'),
        f'{GROUP}.maxPricePerHour: no flavour of group any fits; raise it to "0.10" or offer a smaller flavour',
        id="too dear for the group",
    ),
    pytest.param(
        GOOD + "limits: {maxMemory: 512Mi}",
        "htas.yaml:6 limits.maxMemory: no flavour of group any fits; raise it to 1024Mi or offer a smaller flavour",
        id="too large for the cluster",
    ),
    pytest.param(
        without(
            "flavours",
            "flavours: [{name: thin, cpu: 4, memory: 1Gi, pricePerHour: 1}, "
            "{name: fat, cpu: 1, memory: 4Gi, pricePerHour: 1}]\nlimits: {maxCpu: 2, maxMemory: 2Gi}",
        ),
        "htas.yaml:6 limits: no flavour of group any fits all limits here; raise one or offer a smaller flavour",
        id="each flavour fails another limit",
    ),
    pytest.param(
        without(
            "flavours",
            "flavours: [{name: thin, cpu: 4, memory: 1Gi, pricePerHour: 1}, "
            "{name: fat, cpu: 1, memory: 4Gi, pricePerHour: 1}]\nlimits: {maxMemory: 2Gi}",
        ).replace("{name: any}", "{name: any, maxCpu: 2}"),
        "htas.yaml:4 nodeGroups[0]: no flavour of group any fits both its limits and the cluster's; raise one of them",
        id="the group allows one flavour, the cluster another",
    ),
    pytest.param(
        group("minNodes: 3, maxNodes: 2"),
        f"{GROUP}.minNodes: minNodes (3) is greater than maxNodes (2); lower it or raise maxNodes",
        id="sizes that cross",
    ),
    pytest.param(
        group("minNodes: 3, maxCpu: 2"),
        f"{GROUP}.maxCpu: minNodes of nodeGroups[0] (3) take at least 3000m; raise it or lower minNodes",
        id="a minimum beyond the group's limit",
    ),
    pytest.param(
        group("minNodes: 5") + "limits: {maxNodes: 3}",
        "htas.yaml:6 limits.maxNodes: the groups' minNodes add up to 5; raise it or lower them",
        id="minima beyond the cluster's size",
    ),
    pytest.param(
        group("minNodes: 5") + 'limits: {maxPricePerHour: "0.4"}',
        'htas.yaml:6 limits.maxPricePerHour: minNodes of the groups (5) take at least "0.50"; raise it or lower minNodes',
        id="minima beyond the budget",
    ),
    pytest.param(
        group("autoscaling: {weights: {cpu: 0, memory: 0}}"),
        f"{GROUP}.autoscaling.weights: cpu and memory weigh nothing; write at least one weight above 0",
        id="no weight",
    ),
    pytest.param(
        group("cleaning: {consolidation: {within: 0s}}"),
        f"{GROUP}.cleaning.consolidation.within: '0s' is too small; write more than 0",
        id="replacements that go at once",
    ),
    pytest.param(
        group("cleaning: {maxNodeAge: 30m}"),
        f"{GROUP}.cleaning.maxNodeAge: '30m' is too small; write at least 1h",
        id="an age that a machine has when it has hardly begun: 30m for 30d",
    ),
    pytest.param(
        group("cleaning: {enabled: false, maxNodeAge: 30d}"),
        f"{GROUP}.cleaning.maxNodeAge: has no effect with cleaning's `enabled: false`; remove one of the two",
        id="no age without cleaning",
    ),
    pytest.param(
        group("cleaning: {minKubeletVersion: 1.30}"),
        f"{GROUP}.cleaning.minKubeletVersion: '1.30' is no version of a kubelet; write one such as v1.34 or v1.34.1",
        id="a version that a chart's values would make 1.3",
    ),
    pytest.param(
        group("cleaning: {minKubeletVersion: v1.34.1+k3s1}"),
        f"{GROUP}.cleaning.minKubeletVersion: 'v1.34.1+k3s1' is no version of a kubelet; write one such as v1.34 or v1.34.1",
        id="a build, which is not compared",
    ),
    pytest.param(
        group("cleaning: {enabled: false, minKubeletVersion: v1.34}"),
        f"{GROUP}.cleaning.minKubeletVersion: has no effect with cleaning's `enabled: false`; remove one of the two",
        id="no version without cleaning",
    ),
    pytest.param(
        group("cleaning: {repair: {Ready: 10m}}"),
        f"{GROUP}.cleaning.repair.Ready: 'Ready' needs no repair: nodes that are not Ready are deleted after "
        "timeouts.ready; remove it",
        id="a condition that is cared for otherwise",
    ),
    pytest.param(
        group("cleaning: {repair: {StorageReady: 30m}}"),
        f"{GROUP}.cleaning.repair.StorageReady: 'StorageReady' is True on nodes that are well; write conditions that "
        "are True on those that are not",
        id="a condition that every healthy node bears",
    ),
    pytest.param(
        group("cleaning: {repair: {KernelDeadlock: 10}}"),
        f"{GROUP}.cleaning.repair.KernelDeadlock: '10' has no unit; write it with ms, s, m, h or d, such as 10s",
        id="a time without its unit",
    ),
    pytest.param(
        group("cleaning: {enabled: false, repair: {KernelDeadlock: 10m}}"),
        f"{GROUP}.cleaning.repair: has no effect with cleaning's `enabled: false`; remove one of the two",
        id="no repair without cleaning",
    ),
    pytest.param(
        group("cleaning: {enabled: false, consolidation: {enabled: true}}"),
        f"{GROUP}.cleaning.consolidation: has no effect with cleaning's `enabled: false`; remove one of the two",
        id="consolidation without cleaning",
    ),
    pytest.param(
        group("autoscaling: {algorithm: cheapest-mix, budget: 0s}"),
        f"{GROUP}.autoscaling.budget: '0s' is too small; write more than 0",
        id="no time for a mix",
    ),
    pytest.param(
        group("autoscaling: {algorithm: cheapest-mix, budget: 61s}"),
        f"{GROUP}.autoscaling.budget: '61s' is too great; write at most 1m",
        id="a mix that holds up the cycle",
    ),
    pytest.param(
        group("scheduling: {algorithm: scored, resources: [{name: cpu, weight: 101}]}"),
        f"{GROUP}.scheduling.resources[0].weight: '101' is too great; write at most 100",
        id="a weight kube-scheduler refuses",
    ),
    pytest.param(
        group("scheduling: {algorithm: scored, resources: [{name: cpu}, {name: cpu}]}"),
        f"{GROUP}.scheduling.resources: cpu is there more than once; give it one weight",
        id="a resource weighed twice",
    ),
    pytest.param(
        group("scheduling: {algorithm: scored, resources: [{name: cpus}]}"),
        f"{GROUP}.scheduling.resources[0].name: 'cpus' has no domain; write it as nodes report it, "
        "such as nvidia.com/gpu",
        id="a resource nobody has",
    ),
    pytest.param(
        group(
            "scheduling: {algorithm: scored, strategy: RequestedToCapacityRatio, "
            "shape: [{utilization: 50, score: 3}, {utilization: 50, score: 5}]}"
        ),
        f"{GROUP}.scheduling.shape: utilization 50 follows 50; write the points in ascending order",
        id="a shape that does not ascend",
    ),
    pytest.param(
        group("scheduling: {strategy: LeastAllocated}"),
        f"{GROUP}.scheduling.strategy: has an effect with `algorithm: scored` alone; write that or remove it",
        id="a strategy that would be ignored",
    ),
    pytest.param(
        group("scheduling: {algorithm: scored, shape: [{utilization: 0, score: 10}]}"),
        f"{GROUP}.scheduling.shape: has an effect with `strategy: RequestedToCapacityRatio` alone; "
        "write that or remove it",
        id="a shape that would be ignored",
    ),
    pytest.param(
        group("cleaning: {emptyRelease: at-once, releaseAhead: 1m}"),
        f"{GROUP}.cleaning.releaseAhead: has an effect with `emptyRelease: before-next-billing-period` alone; "
        "write that or remove it",
        id="a time that would be ignored",
    ),
]

VOLUMES = [
    pytest.param(
        GOOD + "volumes: {topology: [{key: a/zone}, {key: a/zone}]}",
        "htas.yaml:6 volumes.topology: a/zone is there more than once; write all its zones in one entry",
        id="a label twice",
    ),
    pytest.param(
        GOOD + "volumes: {topology: [{key: topology.kubernetes.io/zone}]}",
        "htas.yaml:6 volumes.topology[0].key: 'topology.kubernetes.io/zone' is written by HTAS; remove it and write the "
        "flavour's zones instead",
        id="the zone itself",
    ),
    pytest.param(
        GOOD + "volumes: {attachLimits: {d: -1}}",
        "htas.yaml:6 volumes.attachLimits.d: '-1' is too small; write at least 0",
        id="less than no volume",
    ),
]

NODES = [
    pytest.param(
        group("labels: {'a b': x}"), f"{GROUP}.labels[\"a b\"]: 'a b' is no key; {KEY_RULE}", id="a label key"
    ),
    pytest.param(
        group("labels: {Example.com/a: x}"),
        f"{GROUP}.labels[\"Example.com/a\"]: 'Example.com/a' is no key; what stands before / must be a domain in "
        "lower case, such as example.com",
        id="a label key's domain",
    ),
    pytest.param(
        group("labels: {a: -x}"),
        f"{GROUP}.labels.a: '-x' is no label value; write up to 63 of A-Z a-z 0-9 - _ . that begin and end with a "
        "letter or digit, or nothing",
        id="a label value",
    ),
    pytest.param(
        group("labels: {a: true}"),
        f"{GROUP}.labels.a: found true where text belongs; put it in quotes if it is meant as it stands",
        id="a label value that YAML takes for another kind",
    ),
    pytest.param(
        group("labels: {htas.io/group: x}"),
        f"{GROUP}.labels[\"htas.io/group\"]: 'htas.io/group' is HTAS's own; choose another prefix than htas.io/",
        id="HTAS's own label",
    ),
    pytest.param(
        flavour("labels: {topology.kubernetes.io/zone: z}"),
        f"{FLAVOUR}.labels[\"topology.kubernetes.io/zone\"]: 'topology.kubernetes.io/zone' is written by HTAS; "
        "remove it and write the flavour's zones instead",
        id="a label that HTAS writes over",
    ),
    pytest.param(
        group("taints: [{key: a, effect: NoWay}]"),
        f"{GROUP}.taints[0].effect: found 'NoWay'; write NoSchedule, PreferNoSchedule or NoExecute",
        id="a taint's effect",
    ),
    pytest.param(
        group("taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]"),
        f"{GROUP}.taints: a:NoSchedule is there twice, which Kubernetes refuses; remove one",
        id="a taint twice",
    ),
    pytest.param(
        flavour("taints: [{key: a, effect: NoExecute}]").replace(
            "{name: any}", "{name: any, taints: [{key: a, effect: NoExecute}]}"
        ),
        f"{GROUP}.taints[0]: flavour small has a:NoExecute already; remove one of the two",
        id="a taint of the group and its flavour",
    ),
    pytest.param(
        group("taints: [{key: a, effect: NoSchedule}], startupTaints: [{key: a, effect: NoSchedule}]"),
        f"{GROUP}.startupTaints[0]: the group has a:NoSchedule as a lasting taint; remove one of the two",
        id="a start-up taint that is a lasting one of the group",
    ),
    pytest.param(
        flavour("taints: [{key: a, effect: NoExecute}]").replace(
            "{name: any}", "{name: any, startupTaints: [{key: a, effect: NoExecute}]}"
        ),
        f"{GROUP}.startupTaints[0]: flavour small has a:NoExecute as a lasting taint; remove one of the two",
        id="a start-up taint that is a lasting one of a flavour",
    ),
    pytest.param(
        flavour("reserved: {cpu: 1}"),
        f"{FLAVOUR}.reserved: cpu leaves nothing of the machine; reserve less than the flavour's cpu",
        id="all of it reserved",
    ),
    pytest.param(
        flavour("extended: {cpu: 4}"),
        f"{FLAVOUR}.extended.cpu: 'cpu' is no extended resource; write it as the flavour's own key cpu",
        id="cpu as an extended resource",
    ),
    pytest.param(
        flavour("extended: {gpu: 4}"),
        f"{FLAVOUR}.extended.gpu: 'gpu' has no domain; write it as nodes report it, such as nvidia.com/gpu",
        id="an extended resource without a domain",
    ),
    pytest.param(
        flavour("extended: {nvidia.com/gpu: 500m}"),
        f"{FLAVOUR}.extended[\"nvidia.com/gpu\"]: '500m' is no whole number; Kubernetes counts extended resources "
        "in whole units",
        id="half a GPU",
    ),
    pytest.param(
        GOOD.replace("name: small", "name: two words"),
        f"{FLAVOUR}.name: 'two words' cannot be a label's value, as it must; write up to 63 of A-Z a-z 0-9 - _ . "
        "that begin and end with a letter or digit",
        id="a flavour no label can name",
    ),
    pytest.param(
        GOOD.replace("{flavours: [", "{billing: {granularity: 1500ms}, flavours: ["),
        "htas.yaml:4 flavours.billing.granularity: '1500ms' is no whole number of seconds; "
        "clouds bill by the second at the finest",
        id="billing finer than a second",
    ),
    pytest.param(
        without(
            "flavours",
            "flavours: [{name: a, cpu: 1, memory: 1Gi, pricePerHour: 1}, {name: a, cpu: 2, memory: 1Gi, pricePerHour: 2}]",
        ),
        "htas.yaml:5 flavours[1].name: 'a' is defined already at htas.yaml:5 flavours[0].name; rename or remove one",
        id="two flavours of one name",
    ),
    pytest.param(
        without("flavours", "flavours: [{name: a, cpu: 1, memory: 1Gi, pricePerHour: 0,192}]"),
        "htas.yaml:5 flavours[0].192: unknown key: a comma ends a value here; write the number with a point",
        id="a price with a decimal comma",
    ),
]

FILES = [
    pytest.param("", "htas.yaml: is empty or no mapping; write keys and values, such as `cluster: demo`", id="empty"),
    pytest.param(
        "- a", "htas.yaml: is empty or no mapping; write keys and values, such as `cluster: demo`", id="a list"
    ),
    pytest.param(
        GOOD + "\tx: 1",
        "htas.yaml:6: malformed YAML: while scanning for the next token, found character '\\t' that cannot start any token",
        id="a tab",
    ),
    pytest.param(
        GOOD + "---\na: 1",
        "htas.yaml:6: malformed YAML: expected a single document in the stream, but found another document",
        id="two documents",
    ),
    pytest.param(GOOD + "? [a]\n: b", "htas.yaml:6: malformed YAML: a key must be text", id="a list for a key"),
    pytest.param(
        GOOD + "x: !!python/name:os.system ''",
        "htas.yaml:6: malformed YAML: could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/name:os.system'",
        id="a tag of Python's",
    ),
    pytest.param("[" * 3000, "htas.yaml:1: is nested too deeply: more than 100 levels", id="brackets without end"),
    pytest.param(b"a: \xff", "htas.yaml: cannot be read: it is not UTF-8 text; save it as UTF-8", id="not UTF-8"),
    pytest.param(
        without("flavours", "flavours: true"),
        "htas.yaml:5 flavours: found true where text belongs; put it in quotes if it is meant as it stands",
        id="no path of a price file",
    ),
    pytest.param(
        without("flavours", 'flavours: "a\\0b"'),
        "htas.yaml:5 flavours: 'a\\x00b' holds a control character; remove it",
        id="a path no file can have",
    ),
    pytest.param(
        without("flavours", "flavours: nowhere.yaml"),
        "nowhere.yaml: cannot be read: No such file or directory; check the path and its permissions",
        id="no price file",
    ),
    pytest.param(
        without("flavours", "flavours: ."),
        ".: cannot be read: Is a directory; check the path and its permissions",
        id="a folder for a price file",
    ),
]


@pytest.mark.parametrize(("text", "want"), [*KEYS, *NOT_YET, *MACHINES, *VALUES, *GROUPS, *VOLUMES, *NODES, *FILES])
def test_a_mistake_is_told_alone_with_its_place(tmp_path: Path, text: str | bytes, want: str) -> None:
    assert [line.replace(str(tmp_path), ".") for line in told(tmp_path, text)] == [want]


@pytest.mark.parametrize(("price", "want"), PRICES)
def test_a_bad_price_is_told(tmp_path: Path, price: str, want: str) -> None:
    line = f'{FLAVOUR}.pricePerHour: {want}; write a price an hour such as "0.1371"'
    assert told(tmp_path, GOOD.replace('"0.1"', price)) == [line]


def test_a_price_beyond_reason_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, GOOD.replace('"0.1"', "1e99")) == [
        f"{FLAVOUR}.pricePerHour: '1e99' is above a million an hour; choose a larger unit of currency"
    ]


def test_a_pattern_of_nothing_is_told_beside_other_mistakes_of_its_group(tmp_path: Path) -> None:
    """It was told only once all the others were mended."""
    assert told(tmp_path, group("workload: servce, flavours: ['c9.*']"))[1:] == [
        f"{GROUP}.flavours[0]: 'c9.*' matches no flavour of the price file; write a name from it, or * for all"
    ]


def test_all_mistakes_of_both_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(
        "flavours:\n"
        "  - {name: broken, cpu: 0, memory: x, pricePerHour: free}\n"
        "  - {name: sound, cpu: 1, memory: 1Gi, pricePerHour: 1}\n"
        "  - {name: sound, cpu: 2, memory: 1Gi, pricePerHour: 1}\n"
    )
    text = """\
        apiVersion: htas.io/v1alpha1
        kind: HTASConfiguration
        cluster2: x
        cluster: test
        cluster: test
        flavours: prices.yaml
        cycles: {cleaning: soon}
        nodeGroups:
          - name: one
            flavours: [nothing]
          - name: one
            flavours: [sound]
            maxPricePerHour: "0.5"
            cleaning:
              utilizationThreshold: 2
          - name: two
            flavours: [sound]
            maxPricePerHour: "0.5"
    """
    lines = told(tmp_path, text)
    assert [": ".join(line.split(": ")[:1]) for line in lines] == [
        "htas.yaml:5 cluster",
        "htas.yaml:7 cycles.cleaning",
        "htas.yaml:15 nodeGroups[1].cleaning.utilizationThreshold",
        "htas.yaml:3 cluster2",
        "prices.yaml:2 flavours[0].cpu",
        "prices.yaml:2 flavours[0].memory",
        "prices.yaml:2 flavours[0].pricePerHour",
        "prices.yaml:4 flavours[2].name",
        "htas.yaml:11 nodeGroups[1].name",
        "htas.yaml:10 nodeGroups[0].flavours[0]",
        "htas.yaml:18 nodeGroups[2].maxPricePerHour",
    ]
