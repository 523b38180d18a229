#!/usr/bin/env bash
# The black-box compatibility suite. README.md beside it says what each part shows.
#
#   run.sh install     what the suite needs (install.sh)
#   run.sh clients     clients x scenarios
#   run.sh suites      the tests that franz-go and kafka-go ship, whole; suites/exceptions.txt lists those that may not pass
#   run.sh consumers   clients x scenarios of the group protocol consumer (KIP-848)
#   run.sh tools       Apache Kafka's command-line tools
#   run.sh applications   Kafka Streams, a Kafka Connect worker, spring-kafka
#   run.sh dumpcheck   Apache Kafka's DumpLogSegments over every file of a loaded node, then Apache Kafka on its directory;
#                      replicas moved between directories under load; retention of records with timestamps that no clock gave
#   run.sh compaction  the same input compacted by Ottla and by Apache Kafka, directories exchanged; Apache Kafka's LogCompactionTester
#   run.sh compaction-long   that tester with OTTLA_COMPACTION_MESSAGES messages (1000000) on both at the same time, measured
#   run.sh handover    directories of Apache Kafka 4.4.0, 4.1.2 and 3.9.2 to Ottla and back
#   run.sh cluster     brokers of Ottla, alone and beside Apache Kafka's, under Apache Kafka's controllers; each of four leads in turn
#   run.sh cluster-directories   brokers with two log directories: replicas placed and moved, directories that fail, hang, come back, come
#                      back empty (needs root for loop devices)
#   run.sh cluster-placement   brokers of both kinds side by side: each leads, coordinates, hangs, is read from, is reassigned in turn
#   run.sh cluster-long   all of that in clusters of three, two of Apache Kafka and one of Ottla, and one and two: each broker leads
#                      OTTLA_CLUSTER_ROUNDS times (20)
#   run.sh cluster-return   how long a broker of each kind takes from its clean stop to its return, measured
#   run.sh cluster-move   a cluster of Apache Kafka is moved to Ottla and back under load
#   run.sh cluster-move-long   the same, measured, OTTLA_MOVE_CALM_SECONDS (60) before each step
#   run.sh crash       kill -9 under load, restart; with 1 GB of log; and the measured start, memory and size
#   run.sh many        only the part of crash with many partitions: OTTLA_MANY_PARTITIONS idle ones (2000), and OTTLA_KILL_PARTITIONS
#                      (500) with OTTLA_KILL_MEGABYTES (50) in all that meet kill -9 OTTLA_KILL_AFTER_SECONDS after the last (0)
#   run.sh edge        bombs and floods in a control group of 256 MB while a good client goes on; few descriptors; idle connections
#   run.sh chaos       workers of all kinds under kill -9, SIGTERM, SIGSTOP and a slow disk; what they saw is judged (compat/chaos)
#   run.sh soak-chaos  the same for long, round after round; goes on where it ended (testdata/soak/)
#   run.sh chaos-cluster  the same on three brokers under a controller of Apache Kafka, on machines (network namespaces) and disks
#                      (loop devices) of their own: a leader killed every 15 s, and all faults of networks and disks (needs root)
#   run.sh soak-chaos-cluster   the same for long, round after round; goes on where it ended (testdata/soak/)
#   run.sh calm-chaos-cluster   only leaders are killed, for OTTLA_CHAOS_SECONDS (80) with each kind of brokers: how long nobody acknowledges
#   run.sh soak-eos    Kafka Streams, Java and franz-go copy loops for long, killed with the node every 20 s: exactly once (testdata/soak/)
#   run.sh powercut    the power of real file systems is cut under load (OTTLA_POWERCUTS times; needs root for loop devices)
#   run.sh fulldisk    small file systems are filled under load, and make room again; others are frozen (needs root for loop devices)
#   run.sh measure     only the measured figures
#   run.sh bench       Ottla and Apache Kafka measured side by side (flags: compat/bench, as -quick)
#   run.sh rebalance   a group of a hundred real members on a thousand partitions, on both
#   run.sh lag         the metrics of consumer lag beside ConsumerGroupCommand
#   run.sh diff        raw requests, every field of the answers compared with the record of Apache Kafka
#   run.sh control     clients, consumers, tools, applications, diff, fulldisk and eligible against Apache Kafka 4.4.0, recorded under
#                      testdata/control/ (fulldisk needs root for loop devices)
#   run.sh control-diff   of it only diff
#   run.sh control-fulldisk   of it only fulldisk
#   run.sh control-eligible   of it only what becomes of eligible leader replicas (root)
#   run.sh control-soak   soak-chaos (OTTLA_CHAOS_ROUNDS rounds, 2, of OTTLA_CHAOS_SECONDS, 180) and soak-eos (OTTLA_EOS_MINUTES, 5) against it
#   run.sh control-soak-chaos-cluster   soak-chaos-cluster (OTTLA_CHAOS_ROUNDS rounds, 3) against three brokers of Apache Kafka
#   run.sh control-sample   a few cells against Apache Kafka again, compared with what is recorded; and RESULTS.md is in step (for CI)
#   run.sh all         install, clients, suites, tools, applications, diff, dumpcheck, handover, crash
#
# OTTLA_COMPAT_TARGET=kafka runs a part against Apache Kafka instead of bin/ottla. OTTLA_COMPAT_RUN narrows the tests to a
# go test -run pattern below the part's test (clients: all/kcat/codec-gzip). Results go to compat/results/ (ignored by git).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
cd "$root"

pids=$(mktemp)
export OTTLA_COMPAT_PIDS=$pids
# Whatever the tests started and did not end, for instance because they ran out of time: by process id, and only while the process
# still is one of ours.
sweep() {
  local pid
  while read -r pid; do
    if [ -r "/proc/$pid/cmdline" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qE 'kafka\.Kafka|ottla serve| Driver| Handover| Applications|LogCompactionTester|ConnectDistributed|driver\.(py|js)|^kcat '; then
      kill -9 "$pid" 2>/dev/null || true
    fi
  done <"$pids"
  rm -f "$pids"
}
trap sweep EXIT

run_tests() { # NAME TIMEOUT: it ends what hangs, and is several times what a busy machine takes
  local pattern="^($1)\$"
  [ -z "${OTTLA_COMPAT_RUN:-}" ] || pattern+="/${OTTLA_COMPAT_RUN}"
  go test -tags compat -count=1 -v -timeout "$2" -run "$pattern" ./compat
}

results() { # where this run's results go: nowhere when only a part of the cells runs
  if [ -n "${OTTLA_COMPAT_RUN:-}" ]; then unset OTTLA_COMPAT_RESULTS; else export OTTLA_COMPAT_RESULTS="$1"; fi
}

on_disks() { # for tests that make file systems: one that ran out of time leaves them mounted; they go with the programs on them
  export PATH="$PATH:/usr/sbin:/sbin" TMPDIR
  TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/ottla-disks.XXXXXX")
  trap release EXIT
}

in_network() { # PATTERN TIMEOUT: for tests whose servers have network namespaces, as run_tests; the test has one too
  command -v nft >/dev/null && command -v ip >/dev/null || apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends nftables iproute2
  export OTTLA_COMPAT_NETWORK=ottla-$$
  go test -tags compat -c -o "$TMPDIR/compat.test" ./compat
  ip netns add "$OTTLA_COMPAT_NETWORK-clients"
  (cd compat && nsenter --net="/run/netns/$OTTLA_COMPAT_NETWORK-clients" "$TMPDIR/compat.test" -test.v -test.count=1 -test.timeout "$2" -test.run "^($1)\$")
}

release() {
  local mount device namespace group
  sweep
  for namespace in $(ip netns list 2>/dev/null | awk -v of="${OTTLA_COMPAT_NETWORK:-none}-" 'index($1, of) == 1 { print $1 }'); do ip netns del "$namespace" || true; done
  for mount in $(awk -v below="$TMPDIR/" 'index($2, below) == 1 { print $2 }' /proc/mounts); do fsfreeze -u "$mount" 2>/dev/null || true; done
  for mount in $(awk -v below="$TMPDIR/" 'index($2, below) == 1 { print $2 }' /proc/mounts); do umount "$mount" || umount -l "$mount" || true; done
  for device in $(losetup -n -O NAME,BACK-FILE 2>/dev/null | awk -v below="$TMPDIR/" 'index($2, below) == 1 { print $1 }'); do losetup -d "$device" || true; done
  find /sys/fs/cgroup -maxdepth 2 -name 'ottla-chaos-*' -type d 2>/dev/null | while read -r group; do
    [ -d "/proc/${group##*-}" ] || rmdir "$group" 2>/dev/null || true # its test has ended
  done
  rm -rf "$TMPDIR"
}

case "${1:-}" in
  install) exec "$here/install.sh" "${@:2}" ;;
  clients)
    "$here/install.sh"
    results "$here/results"
    run_tests TestClients 60m
    ;;
  suites)
    "$here/install.sh"
    run_tests TestSuites 30m
    ;;
  consumers)
    "$here/install.sh"
    results "$here/results"
    run_tests TestConsumers 30m
    ;;
  tools)
    "$here/install.sh"
    results "$here/results"
    run_tests TestTools 30m
    ;;
  applications)
    "$here/install.sh"
    results "$here/results"
    run_tests TestApplications 30m
    ;;
  dumpcheck)
    "$here/install.sh"
    run_tests "Test(Dump|Adopt|LogDirs|TransactionLog|Retention)" 30m
    ;;
  compaction)
    "$here/install.sh"
    run_tests TestCompaction 30m
    ;;
  compaction-long)
    "$here/install.sh"
    run_tests TestCompactionLong 300m
    ;;
  handover)
    "$here/install.sh"
    run_tests TestHandover 30m
    ;;
  diff)
    "$here/install.sh"
    run_tests TestDiff 20m
    ;;
  cluster)
    "$here/install.sh"
    run_tests 'TestCluster(Broker|Refused|Static|Snapshot|Mixed|Failover|FollowerLag|Versions|Turns|Return)' 45m
    ;;
  cluster-directories)
    "$here/install.sh"
    on_disks
    run_tests "TestCluster(Directories|Eligible)" 60m
    ;;
  cluster-placement)
    "$here/install.sh"
    run_tests TestClusterPlacement 60m
    ;;
  cluster-long)
    "$here/install.sh"
    run_tests TestClusterPlacementLong 120m
    ;;
  cluster-return)
    "$here/install.sh"
    run_tests TestClusterReturnMeasured 20m
    ;;
  cluster-move)
    "$here/install.sh"
    run_tests "Test(ClusterMove|TransactionRetries)" 30m
    ;;
  cluster-move-long)
    "$here/install.sh"
    run_tests TestClusterMoveLong 90m
    ;;
  crash)
    "$here/install.sh"
    run_tests 'Test(Crash|CrashLarge|CrashGroups|Measure)' 30m
    go test -tags compat -count=1 -v -timeout 30m ./compat/many
    ;;
  many)
    "$here/install.sh"
    go test -tags compat -count=1 -v -timeout 60m ./compat/many
    ;;
  powercut)
    "$here/install.sh"
    on_disks
    run_tests TestPowerCut 60m
    ;;
  fulldisk)
    "$here/install.sh"
    on_disks
    results "$here/results"
    run_tests 'Test(FullDisk|HungDisk)' 30m
    ;;
  edge)
    "$here/install.sh"
    run_tests "TestEdge.*" 20m
    ;;
  bench)
    "$here/install.sh"
    go run ./compat/bench "${@:2}"
    ;;
  rebalance)
    "$here/install.sh"
    run_tests TestRebalance 30m
    ;;
  lag)
    "$here/install.sh"
    run_tests TestLag 20m
    ;;
  chaos)
    "$here/install.sh"
    run_tests 'Test(Chaos|Held|BeginCommit|Eos)' 30m
    ;;
  soak-chaos)
    "$here/install.sh"
    run_tests 'TestChaosSoak' 600m
    ;;
  chaos-cluster)
    "$here/install.sh"
    on_disks
    in_network TestChaosCluster 15m
    ;;
  soak-chaos-cluster)
    "$here/install.sh"
    on_disks
    in_network TestChaosClusterSoak 600m
    ;;
  control-soak-chaos-cluster)
    "$here/install.sh"
    export OTTLA_COMPAT_TARGET=kafka OTTLA_CHAOS_ROUNDS="${OTTLA_CHAOS_ROUNDS:-3}"
    on_disks
    in_network TestChaosClusterSoak 600m
    ;;
  calm-chaos-cluster)
    "$here/install.sh"
    on_disks
    in_network TestChaosClusterCalm 20m
    ;;
  soak-eos)
    "$here/install.sh"
    run_tests TestEosSoak 600m
    ;;
  measure)
    "$here/install.sh"
    run_tests TestMeasure 5m
    ;;
  control)
    "$here/install.sh"
    export OTTLA_COMPAT_TARGET=kafka
    results "$root/testdata/control"
    run_tests TestClients 25m
    run_tests TestConsumers 15m
    run_tests TestTools 10m
    run_tests TestApplications 10m
    run_tests TestDiff 25m
    on_disks
    run_tests TestFullDisk 15m
    run_tests TestClusterEligible 15m
    ;;
  control-diff)
    "$here/install.sh"
    export OTTLA_COMPAT_TARGET=kafka
    results "$root/testdata/control"
    run_tests TestDiff 25m
    ;;
  control-fulldisk)
    "$here/install.sh"
    on_disks
    export OTTLA_COMPAT_TARGET=kafka
    results "$root/testdata/control"
    run_tests TestFullDisk 15m
    ;;
  control-eligible)
    "$here/install.sh"
    on_disks
    export OTTLA_COMPAT_TARGET=kafka
    results "$root/testdata/control"
    run_tests TestClusterEligible 15m
    ;;
  control-soak)
    "$here/install.sh"
    export OTTLA_COMPAT_TARGET=kafka OTTLA_CHAOS_ROUNDS="${OTTLA_CHAOS_ROUNDS:-2}" OTTLA_CHAOS_SECONDS="${OTTLA_CHAOS_SECONDS:-180}" OTTLA_EOS_MINUTES="${OTTLA_EOS_MINUTES:-5}"
    run_tests 'Test(Chaos|Eos)Soak' 120m
    ;;
  control-sample)
    "$here/install.sh"
    export OTTLA_COMPAT_TARGET=kafka
    run_tests TestControlSample 20m
    go test -tags compat -count=1 ./compat/table
    ;;
  all)
    for part in clients suites consumers tools applications diff dumpcheck compaction handover crash edge; do "$here/run.sh" "$part"; done
    ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
    ;;
esac
