#!/bin/sh
# Makes the records of this folder anew: make.sh LIBS, the folder of Apache
# Kafka's jars. Ports 31000 and 31001 of localhost must be free. Each is what one
# broker and controller wrote that was started, made two topics, was stopped in
# order, started, killed, started and stopped in order.
set -e
here=$(cd "$(dirname "$0")" && pwd)
libs=$1
java() { command java -Xmx256m -XX:+UseSerialGC -cp "$libs/*" "$@"; }
up() { for i in $(seq 1 100); do java org.apache.kafka.tools.TopicCommand --bootstrap-server localhost:31000 --list > /dev/null 2>&1 && return; done; }
start() { (exec java -Xmx256m -XX:+UseSerialGC -cp "$libs/*" kafka.Kafka $work/server.properties) > $work/out 2>&1 & pid=$!; up; }
create() { java org.apache.kafka.tools.TopicCommand --bootstrap-server localhost:31000 --create "$@"; }
record() { # name, quorum property, options of format
    name=$1 quorum=$2; shift 2
    work=$(mktemp -d)
    cat > $work/server.properties <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:31000,CONTROLLER://localhost:31001
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$work/data
metadata.max.idle.interval.ms=0
auto.create.topics.enable=false
$quorum
PROPERTIES
    java kafka.tools.StorageTool format -c $work/server.properties -t Q1bSgqqPT4yq1sGFWQ9w7w "$@"
    start
    create --topic a --partitions 3
    create --topic b --partitions 1 --config retention.ms=10000000
    kill $pid; wait $pid || true
    start; kill -9 $pid; wait $pid || true
    start; kill $pid; wait $pid || true
    java org.apache.kafka.tools.DumpLogSegments --cluster-metadata-decoder --files $work/data/__cluster_metadata-0/00000000000000000000.log |
        grep -oE 'baseOffset: [0-9]+ lastOffset|payload: .*' > $here/$name.records
    rm -rf $work
}
dynamic=controller.quorum.bootstrap.servers=localhost:31001
record elr $dynamic --standalone
record no-elr $dynamic --standalone --feature eligible.leader.replicas.version=0
record 3.9 controller.quorum.voters=1@localhost:31001 --release-version 3.9
