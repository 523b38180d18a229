#!/bin/sh
# Makes kafka-4.4.0 anew with Apache Kafka 4.4.0, in /tmp/check-4.4.0; KAFKA_LIBS is the directory of its jars.
set -e
rm -rf /tmp/check-4.4.0
java -cp "$KAFKA_LIBS/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c server.properties --standalone
for phase in 0 1; do
  java -Xmx512M -cp "$KAFKA_LIBS/*" kafka.Kafka server.properties > /tmp/check-4.4.0.broker$phase 2>&1 &
  broker=$!
  until kcat -b localhost:18692 -L > /dev/null 2>&1; do sleep 1; done
  java -cp "$KAFKA_LIBS/*" Gold.java localhost:18692 $phase
  kill $broker
  wait $broker || true
done
# The indexes of the metadata log are preallocated: 10 MiB, of which the tests put the zeros back.
for f in /tmp/check-4.4.0/a/__cluster_metadata-0/*index; do truncate -s 120 "$f"; done
rm -rf kafka-4.4.0
cp -r /tmp/check-4.4.0 kafka-4.4.0
