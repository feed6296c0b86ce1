#!/usr/bin/env bash
# Starts real Kubernetes nodes on this machine, each a kubelet, a containerd with CRIU and an sshd in namespaces of its own, and joins them to the cluster of KUBECONFIG.
# Real containers run on them, and can be checkpointed and restored. Needs root.
#
#   KUBECONFIG           an administrator's, as kube-up.sh prints it
#   HTAS_KUBE_BIN        where kubelet and kubectl are     (default ${XDG_CACHE_HOME:-~/.cache}/htas/kube-bin)
#   HTAS_CRIU_PREFIX     what criu-prefix.sh installed      (default ${XDG_CACHE_HOME:-~/.cache}/htas/criu)
#   HTAS_NODES_DIR       state, logs, pid files             (default a new directory under ${TMPDIR:-/var/tmp})
#   HTAS_NODES           names                              (default "real-a real-b")
#   HTAS_NODES_NET       first two bytes of the network     (default 10.93: nodes are 10.93.0.11, .12, …; their pods 10.93.11.0/24, 10.93.12.0/24, …)
#   HTAS_NODES_CPU, HTAS_NODES_MEMORY   what a node offers, e.g. 1500m and 2Gi  (default: all the machine has)
#   HTAS_NODES_LABELS    labels for all of them             (default none)
#   HTAS_NODES_CRIU      options for criu, one word each    (default none; "tcp-close file-locks" lets it dump processes with open connections, which
#                        end in the restored process, and with held locks; without them it refuses)
#   HTAS_NODES_REGISTRIES  HOST:PORT of registries that speak plain HTTP  (default none; the nodes reach this machine as 10.93.0.1)
#   HTAS_NODES_CONTEXT   tells apart two sets of nodes on one machine: bridge, links and cgroups carry it  (default htas; at most 8 letters)
#   HTAS_NODES_OWNER     a process id: once it is gone, whoever starts a set of that name takes this one down  (default none: it stays)
#
# Each node has the images localhost/htas/pause:1 and localhost/htas/busybox:1 (imagePullPolicy: Never) and root's ssh on port 22; its pods are reachable from
# this machine and from the other nodes' pods. Prints HTAS_NODES_DIR and HTAS_NODES_SSH (`$HTAS_NODES_SSH ADDRESS COMMAND`, `scp ${HTAS_NODES_SSH#ssh} …`).
# Run again on the same directory, it starts the nodes that do not run, each as a new machine of the same name, address and ssh host key.
# containerd is started again when it ends, unless NODE/hold is there: so tests stop it for a while. nodes-down.sh stops it all.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/htas
bin=${HTAS_KUBE_BIN:-$cache/kube-bin}
prefix=${HTAS_CRIU_PREFIX:-$cache/criu}
: "${KUBECONFIG:?of the cluster to join}"
net=${HTAS_NODES_NET:-10.93}
context=${HTAS_NODES_CONTEXT:-htas}
read -ra names <<<"${HTAS_NODES:-real-a real-b}"
dir=${HTAS_NODES_DIR:-$(mktemp -d "${TMPDIR:-/var/tmp}/htas-nodes.XXXXXX")}
mkdir -p "$dir"/{pid,images,ssh,log}
dir=$(cd "$dir" && pwd)
kubectl() { "$bin/kubectl" "$@"; }
exec 3>&2
fail() { echo "nodes-up: $*" >&3; exit 1; }
wait_for() { # what command...
  local what=$1; shift
  for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.2; done
  fail "$what did not come up; see $dir/*/log"
}
[[ $EUID -eq 0 ]] || fail "needs root: namespaces, mounts and cgroups"
[[ -x $bin/kubelet ]] || fail "no kubelet in $bin: run HTAS_KUBE_KUBELET=yes kube-build.sh"
[[ -x $prefix/bin/containerd ]] || fail "no containerd in $prefix: run criu-prefix.sh"
[[ ! $dir =~ ^/(etc|var/lib|var/log)/ ]] || fail "HTAS_NODES_DIR cannot lie in /etc, /var/lib or /var/log, which the nodes overlay"
alive() { [[ -f $dir/pid/$1 ]] && tr '\0' ' ' 2>/dev/null <"/proc/$(<"$dir/pid/$1")/cmdline" | grep -- "$2" >/dev/null; } # name word-of-its-command-line (no -q: tr would end by SIGPIPE)
is_new=yes
[[ ! -f $dir/settings ]] || is_new=no
# Whoever was killed (a test run that was cut off) leaves its nodes behind, and would keep the name for ever.
mark=/run/htas-nodes-$context
if [[ $is_new == yes && -f $mark && -e /sys/class/net/$context-br ]]; then
  { read -r owner; read -r abandoned; } <"$mark"
  if [[ -n $owner && ! -d /proc/$owner ]]; then
    [[ ! -f $abandoned/settings ]] || HTAS_NODES_DIR=$abandoned "$here/nodes-down.sh"
    ip link delete "$context-br" 2>/dev/null || true
  fi
fi
[[ $is_new == no || ! -e /sys/class/net/$context-br ]] || fail "another set of nodes is called $context: stop it, or set HTAS_NODES_CONTEXT and HTAS_NODES_NET"
printf 'net=%q context=%q names=(%s) kubectl=%q kubeconfig=%q\n' "$net" "$context" "${names[*]}" "$bin/kubectl" "$KUBECONFIG" >"$dir/settings"
printf '%s\n%s\n' "${HTAS_NODES_OWNER:-}" "$dir" >"$mark"
trap '[[ $? -eq 0 || $is_new == no ]] || HTAS_NODES_DIR=$dir "$here/nodes-down.sh"' EXIT # half a set of nodes helps nobody; the logs stay

# --- what every node needs: images, ssh, an identity towards the apiserver and a way to it
python3 "$here/nodes/oci.py" localhost/htas/pause:1 "$dir/images/pause.tar" "$prefix/bin/busybox" /bin/sleep infinity
python3 "$here/nodes/oci.py" localhost/htas/busybox:1 "$dir/images/busybox.tar" "$prefix/bin/busybox" /bin/sh
[[ -f $dir/ssh/id ]] || ssh-keygen -q -t ed25519 -N '' -f "$dir/ssh/id"
touch "$dir/ssh/known_hosts"
server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}')
endpoint=${server#https://}; endpoint=${endpoint%%/*}
[[ $endpoint == *:* ]] || endpoint+=:443
kubectl config view --minify --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$dir/ca.crt"
# One identity for all: kube-apiserver's node authoriser wants a certificate for each, signed with a key that a kubeconfig does not hold.
kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: ServiceAccount
metadata: {name: $context-nodes, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $context-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:node}
subjects: [{kind: ServiceAccount, name: $context-nodes, namespace: kube-system}]
YAML
token=$(kubectl create token "$context-nodes" -n kube-system --duration=24h)

ip link show "$context-br" >/dev/null 2>&1 || ip link add "$context-br" type bridge
ip address replace "$net.0.1/24" dev "$context-br"
ip link set "$context-br" up
if ! alive forward forward.py; then
  setsid nohup python3 "$here/nodes/forward.py" "$net.0.1" 6443 "${endpoint%:*}" "${endpoint##*:}" >"$dir/log/forward.log" 2>&1 3>&- </dev/null &
  echo $! >"$dir/pid/forward"
  disown
fi

reserved() { # resource-capacity wanted unit: what to reserve so that WANTED is left
  python3 - "$@" <<'PY'
import sys
capacity, wanted = int(sys.argv[1]), sys.argv[2]
units = {"m": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
unit = next((u for u in units if wanted.endswith(u)), "")
scale = units[unit] if unit else (1000 if sys.argv[3] == "m" else 1)
print(max(0, capacity - int(float(wanted.removesuffix(unit)) * scale)))
PY
}
cpus=$(($(nproc) * 1000)) memory=$(($(awk '/MemTotal/ {print $2}' /proc/meminfo) * 1024))
reserve_cpu=0 reserve_memory=0
[[ -z ${HTAS_NODES_CPU:-} ]] || reserve_cpu=$(reserved $cpus "$HTAS_NODES_CPU" m)
[[ -z ${HTAS_NODES_MEMORY:-} ]] || reserve_memory=$(reserved "$memory" "$HTAS_NODES_MEMORY" bytes)

# --- the nodes
apart() { # pid: it has left this network namespace
  local its
  its=$(readlink "/proc/$1/ns/net") && [[ -n $its && $its != "$(readlink /proc/$$/ns/net)" ]]
}
cgroups() { # every cgroup v1 controller that is mounted, and the unified tree
  awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts
}
peers=()
for index in "${!names[@]}"; do peers+=("$net.0.$((index + 11))=$net.$((index + 11)).0/24"); done
index=10
for name in "${names[@]}"; do
  index=$((index + 1))
  ! alive "$name" "$dir/$name" || continue
  ip link delete "$context-$index" 2>/dev/null || true
  rm -rf "${dir:?}/$name"
  node=$dir/$name address=$net.0.$index link=$context-$index
  mkdir -p "$node/log"
  for tree in $(cgroups); do
    mkdir -p "$tree/$context/$name"
    for level in "$context" "$context/$name"; do # a new v1 cpuset is empty, and nothing may run in it
      for file in cpuset.cpus cpuset.mems; do [[ ! -f $tree/$file ]] || cat "$tree/$file" >"$tree/$level/$file"; done
    done
  done
  cat >"$node/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$net.0.1:6443", tls-server-name: "${endpoint%:*}", certificate-authority: "$dir/ca.crt"}}]
users: [{name: u, user: {token: "$token"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
YAML
  cat >"$node/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$dir/ca.crt"}}
authorization: {mode: Webhook}
failCgroupV1: false            # kubelet 1.35 and later refuse cgroup v1 otherwise
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /$context/$name
systemReserved: {cpu: "${reserve_cpu}m", memory: "$reserve_memory"}
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
resolvConf: ""
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
YAML
  if [[ ! -f $dir/ssh/host-$name ]]; then
    ssh-keygen -q -t ed25519 -N '' -f "$dir/ssh/host-$name"
    echo "$address $(cut -d' ' -f1,2 "$dir/ssh/host-$name.pub")" >>"$dir/ssh/known_hosts"
  fi
  cat >"$node/sshd_config" <<CONF
Port 22
ListenAddress $address
HostKey $dir/ssh/host-$name
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
AuthorizedKeysFile $dir/ssh/id.pub
AcceptEnv LANG
SetEnv PATH=$prefix/bin:/usr/sbin:/usr/bin:/sbin:/bin
Subsystem sftp internal-sftp
CONF
  setsid nohup unshare --mount --net --pid --uts --ipc --fork --kill-child --mount-proc --propagation private \
    "$here/nodes/node.sh" "$name" "$node" "$address" "$net.$index.0/24" "$prefix" "$bin/kubelet" "${peers[@]}" >"$node/log/node.log" 2>&1 3>&- </dev/null &
  echo $! >"$dir/pid/$name"
  disown
  wait_for "the namespaces of $name" apart "$(<"$dir/pid/$name")"
  ip link add "$link" type veth peer name eth0 netns "$(<"$dir/pid/$name")"
  ip link set "$link" master "$context-br" up
  ip route replace "$net.$index.0/24" via "$address"
done

ready() {
  kill -0 "$(<"$dir/pid/$1")" 2>/dev/null || fail "node $1 ended: $(tail -1 "$dir/$1/log/node.log")"
  [[ $(kubectl get node "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}') == True ]]
}
for name in "${names[@]}"; do wait_for "node $name" ready "$name"; done
echo "export HTAS_NODES_DIR=$dir HTAS_NODES_SSH='ssh -q -o User=root -i $dir/ssh/id -o UserKnownHostsFile=$dir/ssh/known_hosts -o StrictHostKeyChecking=yes -o BatchMode=yes'"
