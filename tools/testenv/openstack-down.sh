#!/bin/bash
# openstack-down.sh [WORKDIR] [--purge] [--kill] [NAME...]: end what openstack-up.sh started, by pid; NAMEs alone (as in WORKDIR/run:
# nova-api, nova-compute-fake1, rabbitmq …) end those, and openstack-up.sh starts them again. --purge deletes WORKDIR.
W=${1:-.testenv/openstack}
shift || true
signal=TERM purge= names=()
for a in "$@"; do case $a in --purge) purge=1;; --kill) signal=KILL;; *) names+=("$a");; esac; done
stop() { # pid files; each was started with setsid, so pid = process group id
  local f p i left pids=()
  for f in "$@"; do [ -s "$f" ] || continue; p=$(cat "$f"); kill -CONT -- -"$p" 2>/dev/null; kill -$signal -- -"$p" 2>/dev/null && pids+=("$p"); done
  for ((i=0;i<100;i++)); do left=0
    for p in "${pids[@]}"; do kill -0 -- -"$p" 2>/dev/null && left=1; done
    [ $left = 0 ] && break; sleep 0.1; done
  for p in "${pids[@]}"; do kill -KILL -- -"$p" 2>/dev/null; done
  rm -f "$@"
}
if [ ${#names[@]} -gt 0 ]; then
  for n in "${names[@]}"; do [ -s "$W/run/$n.pid" ] && stop "$W/run/$n.pid"; done
  exit 0
fi
infra=() api=()
for f in "$W"/run/*.pid; do
  case ${f##*/} in mariadb.pid|rabbitmq.pid|epmd.pid) infra+=("$f");; \*.pid) ;; *) api+=("$f");; esac
done
stop "${api[@]}"
stop "${infra[@]}"
[ -n "$purge" ] && rm -rf "$W"
exit 0
