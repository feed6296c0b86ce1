#!/bin/bash
# Bring up a real Apache Cassandra (server jars from Maven Central) on loopback:
# one node on 127.0.0.1, or a ring on 127.0.0.1, .2, .3 ...
#   cassandra-up.sh [WORKDIR]     (idempotent: starts the nodes that are not up; see cassandra-down.sh)
# Needs mvn (first run only), a Java 17 or 11 and python3.  The last line printed
# is an export of HTAS_CASSANDRA_CONTACT for eval; progress goes to stderr.
# Environment knobs:
#   HTAS_CASSANDRA_HOME     where the jars are kept (default ${XDG_CACHE_HOME:-$HOME/.cache}/htas/cassandra)
#   HTAS_CASSANDRA_DIR      working directory when no WORKDIR is given (default .testenv/cassandra)
#   HTAS_CASSANDRA_PORT     CQL port, the same on every node (default 23800)
#   HTAS_CASSANDRA_STORAGE_PORT   port between the nodes, the same on every node (default CQL port + 1)
#   HTAS_CASSANDRA_JMX_PORT JMX port of node 1, on 127.0.0.1; node N has this + N - 1 (default CQL port + 2)
#   HTAS_CASSANDRA_NODES    1 (default) to 9
#   HTAS_CASSANDRA_ONLY     node numbers to start, e.g. "2" (default: all)
#   HTAS_CASSANDRA_HEAP     largest heap of each node (default 512M; it starts at 96M)
#   HTAS_CASSANDRA_AUTH     1: log in with a password (cassandra / cassandra), permissions on; say it again at every call
#   HTAS_CASSANDRA_SYNC     commit log: batch (default; every acknowledged write is on disk), group or periodic
#   HTAS_CASSANDRA_YAML     file whose lines are added to every cassandra.yaml (a repeated key wins)
#   HTAS_CASSANDRA_JVM      more JVM options
#   HTAS_CASSANDRA_JAVA_HOME  the Java to use (default: JAVA_HOME, java, then the alternatives; first 17 or 11)
#   HTAS_CASSANDRA_VERSION  another cassandra-all version
#   HTAS_CASSANDRA_WAIT     seconds to wait for a node (default 180)
set -euo pipefail
T0=$(date +%s%N)
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LIBS=${HTAS_CASSANDRA_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/htas/cassandra}
W=${1:-${HTAS_CASSANDRA_DIR:-.testenv/cassandra}}
PORT=${HTAS_CASSANDRA_PORT:-23800}
STORAGE=${HTAS_CASSANDRA_STORAGE_PORT:-$((PORT+1))}
JMX=${HTAS_CASSANDRA_JMX_PORT:-$((PORT+2))}
NODES=${HTAS_CASSANDRA_NODES:-1}
HEAP=${HTAS_CASSANDRA_HEAP:-512M}
AUTH=${HTAS_CASSANDRA_AUTH:-0}
SYNC=${HTAS_CASSANDRA_SYNC:-batch}
WAIT=${HTAS_CASSANDRA_WAIT:-180}
RF=$((NODES < 3 ? NODES : 3))

say() { local ms=$(( ($(date +%s%N) - T0) / 1000000 )); printf '%4d.%01ds %s\n' $((ms/1000)) $((ms%1000/100)) "$*" >&2; }
fail() { echo "failed: $1" >&2; [ -z "${2:-}" ] || tail -n 20 "$2" >&2; exit 1; }
[[ $NODES =~ ^[1-9]$ ]] || fail "HTAS_CASSANDRA_NODES must be 1 to 9"
ONLY=${HTAS_CASSANDRA_ONLY:-$(seq -s ' ' "$NODES")}
command -v python3 >/dev/null || fail "python3 is missing"

# ---------------------------------------------------------------- Java 17 or 11
java_major() { "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.specification.version = //p'; }
JAVA= MAJOR=
while read -r candidate; do
  [ -x "$candidate" ] || continue
  MAJOR=$(java_major "$candidate")
  case $MAJOR in 17|11) JAVA=$candidate; break;; esac
done < <(
  if [ -n "${HTAS_CASSANDRA_JAVA_HOME:-}" ]; then echo "$HTAS_CASSANDRA_JAVA_HOME/bin/java"
  else
    [ -z "${JAVA_HOME:-}" ] || echo "$JAVA_HOME/bin/java"
    command -v java || true
    update-alternatives --list java 2>/dev/null || true
  fi)
[ -n "$JAVA" ] || fail "no Java 17 or 11 found (Cassandra 5.0 starts on no other; last seen: ${MAJOR:-none})"

# ---------------------------------------------------------------- jars
VERSION=${HTAS_CASSANDRA_VERSION:-$(sed -n 's/.*<cassandra.version>\(.*\)<\/cassandra.version>.*/\1/p' "$HERE/cassandra/pom.xml")}
mkdir -p "$LIBS"; LIBS=$(cd "$LIBS" && pwd)
LIB=$LIBS/$VERSION
if [ ! -d "$LIB" ]; then
  command -v mvn >/dev/null || fail "mvn is missing (needed once, to fetch cassandra-all $VERSION)"
  exec 9>"$LIBS/.lock"; flock 9
  if [ ! -d "$LIB" ]; then
    rm -rf "$LIB.part"
    say "maven: cassandra-all $VERSION and its run-time dependencies"
    mvn -B -q -f "$HERE/cassandra/pom.xml" -Dcassandra.version="$VERSION" \
      -DoutputDirectory="$LIB.part" dependency:copy-dependencies >&2 || fail "maven could not resolve cassandra-all $VERSION"
    mv "$LIB.part" "$LIB"
    say "maven: $(ls "$LIB" | wc -l) jars, $(du -sm "$LIB" | cut -f1) MiB"
  fi
  exec 9>&-
fi
[ -e "$LIB/cassandra-all-$VERSION.jar" ] || fail "the jar directory of $VERSION is incomplete; delete it and run again"

mkdir -p "$W"; W=$(cd "$W" && pwd)
[[ $W$LIB != *' '* ]] || fail "a directory with a space in its name: $W, $LIB"
export LC_ALL=C.UTF-8 LANG=C.UTF-8
export CQLPING_USER=cassandra CQLPING_PASSWORD=cassandra
unset CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS || true

ip() { echo "127.0.0.$1"; }
# A pid file counts only while its process is the node it was written for.
alive() {
  local f=$W/node$1/pid p
  [ -s "$f" ] && p=$(cat "$f") && cat "/proc/$p/cmdline" 2>/dev/null | tr '\0' '\n' | grep -qxF -- "@$W/node$1/conf/jvm.args"
}
taken() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }
ping() { local n=$1; shift; python3 "$HERE/cassandra/cqlping.py" "$(ip "$n")" "$PORT" "$@" 2>>"$W/node$n/ping.err"; }

# ---------------------------------------------------------------- configuration
SEEDS=$(for ((n = 1; n <= RF; n++)); do printf '%s%s:%s' "$([ $n = 1 ] || echo ,)" "$(ip $n)" "$STORAGE"; done)
configure() { # node
  local n=$1 d=$W/node$1
  mkdir -p "$d"/{conf,logs,data,commitlog,hints,caches,cdc,tmp}
  # One token a node, evenly spread: a ring of known shape, and no vnode work at start.
  local token; token=$(python3 -c "print($n * 2**64 // $NODES - 2**63 - 1 if $n < $NODES else 2**63 - 1)")
  {
    cat <<X
cluster_name: htas
num_tokens: 1
initial_token: $token
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
dynamic_snitch: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "$SEEDS"
listen_address: $(ip $n)
rpc_address: $(ip $n)
native_transport_port: $PORT
storage_port: $STORAGE
data_file_directories: ["$d/data"]
commitlog_directory: $d/commitlog
hints_directory: $d/hints
saved_caches_directory: $d/caches
cdc_raw_directory: $d/cdc
storage_compatibility_mode: NONE
auto_snapshot: false
snapshot_before_compaction: false
incremental_backups: false
commitlog_segment_size: 8MiB
commitlog_total_space: 64MiB
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
key_cache_size: 8MiB
file_cache_size: 32MiB
networking_cache_size: 16MiB
concurrent_reads: 16
concurrent_writes: 16
concurrent_counter_writes: 4
concurrent_materialized_view_writes: 2
concurrent_compactors: 1
memtable_flush_writers: 1
native_transport_max_threads: 32
hinted_handoff_enabled: true
read_request_timeout: 5s
range_request_timeout: 8s
write_request_timeout: 5s
counter_write_request_timeout: 5s
truncate_request_timeout: 60s
request_timeout: 8s
slow_query_log_timeout: 0ms
X
    case $SYNC in
      batch) echo "commitlog_sync: batch";;
      group) printf '%s\n' "commitlog_sync: group" "commitlog_sync_group_window: 10ms";;
      periodic) printf '%s\n' "commitlog_sync: periodic" "commitlog_sync_period: 10s";;
      *) fail "HTAS_CASSANDRA_SYNC must be batch, group or periodic";;
    esac
    if [ "$AUTH" = 1 ]; then
      cat <<X
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
roles_validity: 100ms
permissions_validity: 100ms
credentials_validity: 100ms
X
    fi
    [ -z "${HTAS_CASSANDRA_YAML:-}" ] || cat "$HTAS_CASSANDRA_YAML"
  } >"$d/conf/cassandra.yaml"
  cat >"$d/conf/logback.xml" <<X
<configuration>
  <appender name="FILE" class="ch.qos.logback.core.rolling.RollingFileAppender">
    <file>$d/logs/system.log</file>
    <rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
      <fileNamePattern>$d/logs/system.log.%i</fileNamePattern>
      <minIndex>1</minIndex><maxIndex>2</maxIndex>
    </rollingPolicy>
    <triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
      <maxFileSize>20MB</maxFileSize>
    </triggeringPolicy>
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="FILE"/></root>
</configuration>
X
  opens() { printf -- "--add-opens\n$1=ALL-UNNAMED\n"; }
  exports() { printf -- "--add-exports\n$1=ALL-UNNAMED\n"; }
  {
    cat <<X
-Xms96M
-Xmx$HEAP
-Xss256k
-XX:+UseSerialGC
-XX:MaxDirectMemorySize=256M
-XX:+ExitOnOutOfMemoryError
-XX:+PerfDisableSharedMem
-Djava.net.preferIPv4Stack=true
-Djava.io.tmpdir=$d/tmp
-Djna.tmpdir=$d/tmp
-Djdk.attach.allowAttachSelf=true
-Dio.netty.tryReflectionSetAccessible=true
-Dlogback.configurationFile=$d/conf/logback.xml
-Dcassandra.config=file://$d/conf/cassandra.yaml
-Dcassandra.storagedir=$d
-Dcassandra.logdir=$d/logs
-Dcassandra.jmx.local.port=$((JMX + n - 1))
-Dcassandra-foreground=true
-Dcassandra.skip_wait_for_gossip_to_settle=0
-Dcassandra.ring_delay_ms=1000
-Dcassandra.shutdown_announce_in_ms=200
-Dcassandra.superuser_setup_delay_ms=100
-Dcassandra.auth_bcrypt_gensalt_log2_rounds=4
-Dcassandra.system_auth.default_rf=$RF
-Dcassandra.system_distributed.default_rf=$RF
-Dcassandra.system_traces.default_rf=$RF
X
    # Several nodes share few cores: quick compilation starts the ring in half the time.
    [ "$NODES" = 1 ] || echo -XX:TieredStopAtLevel=1
    for m in ${HTAS_CASSANDRA_JVM:-}; do echo "$m"; done
    echo "-javaagent:$(ls "$LIB"/jamm-*.jar)"
    printf -- '-cp\n%s\n' "$d/conf:$LIB/*"
  } >"$d/conf/jvm.args"
  { for m in java.base/jdk.internal.misc java.base/java.lang.ref java.sql/java.sql java.rmi/sun.rmi.registry \
        java.rmi/sun.rmi.server java.management.rmi/com.sun.jmx.remote.internal.rmi jdk.unsupported/sun.misc; do exports $m; done
    for m in java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.util \
        java.base/java.nio java.base/sun.nio.ch java.base/jdk.internal.loader java.base/jdk.internal.math \
        java.base/jdk.internal.module java.base/jdk.internal.ref java.base/jdk.internal.reflect \
        java.base/jdk.internal.util.jar jdk.management/com.sun.management.internal; do opens $m; done
  } >"$d/conf/modules.args"
  cat >"$d/nodetool" <<X
#!/bin/sh
exec "$JAVA" -XX:TieredStopAtLevel=1 -Xmx128M "@$d/conf/modules.args" -cp "$LIB/*" -Duser.home="$d" -Djava.io.tmpdir="$d/tmp" \\
  -Djava.net.preferIPv4Stack=true -Dlogback.configurationFile="$d/conf/nodetool-logback.xml" \\
  org.apache.cassandra.tools.NodeTool -h 127.0.0.1 -p $((JMX + n - 1)) "\$@"
X
  chmod +x "$d/nodetool"
  echo '<configuration><root level="OFF"/></configuration>' >"$d/conf/nodetool-logback.xml"
}

start() { # node
  local n=$1 d=$W/node$1 a
  for a in "$(ip $n) $PORT" "$(ip $n) $STORAGE" "127.0.0.1 $((JMX + n - 1))"; do
    ! taken $a || fail "something else listens on ${a/ /:} (HTAS_CASSANDRA_PORT, _STORAGE_PORT, _JMX_PORT)"
  done
  configure "$n"
  : >"$d/ping.err"
  # setsid: the pid is the process group id too, and no signal of a terminal reaches it
  ( cd "$d" && exec setsid nohup "$JAVA" "@$d/conf/modules.args" "@$d/conf/jvm.args" org.apache.cassandra.service.CassandraDaemon \
      >"$d/logs/stdout" 2>&1 </dev/null ) &
  echo $! >"$d/pid"
  say "node $n: started, pid $!"
}

wait_node() { # node
  local n=$1 d=$W/node$1 i
  for ((i = 0; i < WAIT * 5; i++)); do
    if taken "$(ip $n)" "$PORT" && ping $n >/dev/null; then say "node $n: answers CQL on $(ip $n):$PORT"; return; fi
    alive $n || { [ ! -s "$d/logs/system.log" ] || grep -E '^ERROR|Exception' "$d/logs/system.log" | tail -n 5 >&2 || true; fail "node $n ended" "$d/logs/stdout"; }
    sleep 0.2
  done
  tail -n 2 "$d/ping.err" >&2
  fail "node $n does not answer CQL after $WAIT s" "$d/logs/system.log"
}

# ---------------------------------------------------------------- start
started=0
for n in $ONLY; do alive $n || { start $n; started=1; }; done
for n in $ONLY; do wait_node $n; done
if [ $NODES -gt 1 ] && [ "$ONLY" = "$(seq -s ' ' "$NODES")" ]; then
  # Every node sees every other one, and a read at ALL finds all of them up.
  for n in $ONLY; do
    for ((i = 0; i < WAIT * 5; i++)); do
      [ "$(ping $n ONE 'SELECT count(*) FROM system.peers_v2' || true)" = $((NODES - 1)) ] \
        && ping $n ALL 'SELECT count(*) FROM system_distributed.view_build_status' >/dev/null && break
      sleep 0.2
    done
    [ $i -lt $((WAIT * 5)) ] || fail "node $n does not see the whole ring" "$W/node$n/ping.err"
  done
  say "ring of $NODES: every node sees every other"
fi
for n in $ONLY; do
  say "node $n: $(awk '/^VmRSS/ { printf "%d MiB resident", $2 / 1024 }' "/proc/$(cat "$W/node$n/pid")/status")"
done
contact=$(for ((n = 1; n <= NODES; n++)); do printf '%s%s:%s' "$([ $n = 1 ] || echo ,)" "$(ip $n)" "$PORT"; done)
[ "$AUTH" != 1 ] || echo "export HTAS_CASSANDRA_USER=cassandra HTAS_CASSANDRA_PASSWORD=cassandra"
echo "export HTAS_CASSANDRA_CONTACT=$contact"
