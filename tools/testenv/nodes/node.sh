#!/usr/bin/env bash
# The first process of a node: runs in its own mount, network, PID, UTS and IPC namespaces, where nodes-up.sh started it; kubelet, containerd and sshd are its children.
# When it ends, the kernel ends every process of the node, and with them go its mounts and its network.
#   node.sh NAME DIR ADDRESS PODS_CIDR PREFIX KUBELET [PEER_ADDRESS=PEER_PODS_CIDR...]
set -euo pipefail
name=$1 dir=$2 address=$3 pods=$4 prefix=$5 kubelet=$6 peers=("${@:7}")
export PATH=$prefix/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=$dir/tmp
unset KUBECONFIG XDG_RUNTIME_DIR NOTIFY_SOCKET HTTP_PROXY HTTPS_PROXY http_proxy https_proxy

hostname "$name"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/{containerd,lock,sshd,netns}
mount -t tmpfs -o mode=1777 tmpfs /dev/shm # where moves have their keys and pipes: each node its own
for tree in /etc /var/lib /var/log; do # the machine's, with this node's changes on top
  mkdir -p "$dir/over$tree" "$dir/work$tree"
  mount -t overlay -o "lowerdir=$tree,upperdir=$dir/over$tree,workdir=$dir/work$tree" overlay "$tree"
done
for state in containerd kubelet; do # containerd stacks overlays of its own, and an overlay cannot be the upper layer of another
  mkdir -p "$dir/$state" "/var/lib/$state"
  mount --bind "$dir/$state" "/var/lib/$state"
done
{ # sshd's own user; and a root without the machine's ~/.bashrc
  echo "root:x:0:0:root:$dir/home:/bin/sh"
  grep -v -e ^root: -e ^sshd: /etc/passwd
  echo 'sshd:x:74:65534::/run/sshd:/usr/sbin/nologin'
} >"$dir/passwd"
cp "$dir/passwd" /etc/passwd
mkdir -p "$TMPDIR" "$dir/home" /etc/cni/net.d /etc/criu
# runc gives this file to criu. Without iptables it must lock the network through nftables ("Locking network failed: iptables-restore returned -1").
printf '%s\n' 'network-lock nftables' ${HTAS_NODES_CRIU:-} >/etc/criu/runc.conf
for registry in ${HTAS_NODES_REGISTRIES:-}; do
  mkdir -p "/etc/containerd/certs.d/$registry"
  echo "server = \"http://$registry\"" >"/etc/containerd/certs.d/$registry/hosts.toml"
done
# kubelet sets these sysctls for the whole machine unless they read as it wants them; the node alone sees these values.
for tunable in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=$dir/sysctl.$(tr / . <<<"${tunable%=*}")
  echo "${tunable#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${tunable%=*}"
done

until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip address add "$address/24" dev eth0
ip link set eth0 up
ip route add default via "${address%.*}.1"
for peer in "${peers[@]}"; do [[ ${peer%=*} == "$address" ]] || ip route add "${peer#*=}" via "${peer%=*}"; done
echo 1 >/proc/sys/net/ipv4/ip_forward

cat >/etc/cni/net.d/10-htas.conflist <<JSON
{"cniVersion": "1.0.0", "name": "htas", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
cat >"$dir/containerd.toml" <<TOML
version = 3
disabled_plugins = ["io.containerd.internal.v1.opt"]
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/htas/pause:1"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  enable_criu = true
  enable_experimental_restore_via_create = true
  restrict_oom_score_adj = true # without CAP_SYS_RESOURCE the sandbox's -998 fails: "can't get final child's PID from pipe: EOF"
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["$prefix/open/usr/lib/cni"]
  conf_dir = "/etc/cni/net.d"
TOML
while :; do # as systemd would: started again, unless a test holds it back
  [[ -e $dir/hold ]] || containerd --config "$dir/containerd.toml" || true
  sleep 0.5
done >"$dir/log/containerd.log" 2>&1 &
sshd -D -e -f "$dir/sshd_config" >"$dir/log/sshd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.1; done
for image in "$dir"/../images/*.tar; do ctr -n k8s.io images import --local "$image" >>"$dir/log/images.log" 2>&1; done
providers=() # who tells the kubelet what it may pull with
[[ ! -f $dir/../credential-providers.yaml ]] || providers=(--image-credential-provider-config="$dir/../credential-providers.yaml" --image-credential-provider-bin-dir="$dir/../providers")
"$kubelet" "${providers[@]}" --config="$dir/kubelet.yaml" --kubeconfig="$dir/kubeconfig" --hostname-override="$name" --node-ip="$address" --node-labels="${HTAS_NODES_LABELS:-}" \
  --v="${HTAS_NODES_VERBOSE:-2}" >"$dir/log/kubelet.log" 2>&1 &
wait
