#!/usr/bin/env bash
# Installs what openstack-up.sh starts, from Debian's packages (bookworm: OpenStack Zed): needs root, apt-get and some 100 s the
# first time. Services are kept from starting by themselves while this runs: openstack-up.sh starts its own, on loopback.
set -euo pipefail
packages=(nova-api nova-conductor nova-scheduler nova-compute keystone placement-api glance-api neutron-server
  neutron-plugin-ml2 rabbitmq-server memcached uwsgi uwsgi-plugin-python3 python3-openstackclient
  mariadb-server-core mariadb-client-core)
has_all() { dpkg-query --show --showformat='${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | grep -c '^installed$' || true; }
[[ $(has_all) -lt ${#packages[@]} ]] || exit 0
[[ $EUID -eq 0 ]] || { echo "openstack-packages: not root; install: ${packages[*]}" >&2; exit 1; }
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
begun=$SECONDS log=$(mktemp)
if ! { apt-get update -qq && apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  exit 1
fi
echo "openstack-packages: installed in $((SECONDS - begun)) s"
