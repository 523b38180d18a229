#!/bin/sh
# Makes the goldens of this folder anew: make.sh LIBS, the folder of Apache
# Kafka's jars. Ports 29392 to 29394 of localhost must be free.
set -e
here=$(cd "$(dirname "$0")" && pwd)
libs=$1
work=$(mktemp -d)
java() { command java -Xmx256m -XX:+UseSerialGC -cp "$libs/*" "$@"; }
start() { exec java -Xmx256m -XX:+UseSerialGC -cp "$libs/*" kafka.Kafka "$1"; }
cat > $work/1.properties <<END
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:29392,CONTROLLER://localhost:29393
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.quorum.bootstrap.servers=localhost:29393
log.dirs=$work/1a,$work/1b
metadata.log.dir=$work/meta
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
broker.rack=r1
metadata.log.max.record.bytes.between.snapshots=5000
metadata.max.idle.interval.ms=0
broker.session.timeout.ms=3000
auto.create.topics.enable=false
END
sed -e 's/^process.roles=.*/process.roles=broker/' -e 's/^node.id=.*/node.id=2/' -e 's/rack=r1/rack=r2/' \
    -e 's/^listeners=.*/listeners=PLAINTEXT:\/\/localhost:29394/' -e '/^metadata.log.dir/d' \
    -e "s#^log.dirs=.*#log.dirs=$work/2#" $work/1.properties > $work/2.properties
id=Q1bSgqqPT4yq1sGFWQ9w7w
java kafka.tools.StorageTool format -c $work/1.properties -t $id --standalone \
    --add-scram 'SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=4096]' \
    --add-scram 'SCRAM-SHA-512=[name=bob,password=bob-secret,iterations=4096]' > $work/out 2>&1
java kafka.tools.StorageTool format -c $work/2.properties -t $id --no-initial-controllers >> $work/out 2>&1
start $work/1.properties >> $work/out 2>&1 & one=$!
start $work/2.properties >> $work/out 2>&1 & two=$!
trap 'kill -9 $one $two 2>/dev/null || true' EXIT
sleep 12
java $here/Scenario.java localhost:29392 first
kill $two; wait $two || true      # leaves in a controlled way
sleep 2
start $work/2.properties >> $work/out 2>&1 & two=$!
sleep 10
java $here/Scenario.java localhost:29392 second
kill -9 $two; sleep 6             # is fenced
kill $one; wait $one || true
cd $work/meta/__cluster_metadata-0
rm -f $here/*.checkpoint $here/*.log $here/*.image $here/log.dump
cp *.checkpoint $here/
cp 00000000000000000000.log $here/
chmod 644 $here/*.checkpoint $here/*.log
first=00000000000000000000-0000000000.checkpoint
for snapshot in *.checkpoint; do
    test $snapshot = $first || java $here/Images.java $snapshot > $here/$snapshot.image
done
java $here/Images.java $first 00000000000000000000.log > $here/log.image
java org.apache.kafka.tools.DumpLogSegments --cluster-metadata-decoder --files 00000000000000000000.log |
    grep -o "payload: .*" | sed "s/payload: //" > $here/log.dump
cd / && rm -rf $work
