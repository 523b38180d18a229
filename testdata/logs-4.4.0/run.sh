#!/bin/sh
# Makes the directory anew with Apache Kafka 4.4.0; KAFKA_LIBS is the directory of its jars.
set -e
rm -rf /tmp/logs-4.4.0
java -cp "$KAFKA_LIBS/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c server.properties --standalone
for phase in 0 1; do
  java -Xmx512M -cp "$KAFKA_LIBS/*" kafka.Kafka server.properties > /tmp/logs-4.4.0.broker$phase 2>&1 &
  broker=$!
  until kcat -b localhost:31692 -L > /dev/null 2>&1; do sleep 1; done
  java -cp "$KAFKA_LIBS/*" Gold.java localhost:31692 $phase
  kill $broker
  wait $broker || true
done
