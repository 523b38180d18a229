"""The Python side of the compatibility suite: confluent-kafka (librdkafka) driven by lines of JSON.

The protocol is that of ../java/Driver.java: one request a line on standard input, each run in a thread of its own,
answered by lines {"id", "progress"} and one {"id", "ok"} or {"id", "error", "message"} on standard output.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading

import confluent_kafka
from confluent_kafka import admin as ck_admin

LATEST, EARLIEST = -1, -2
# What librdkafka itself refuses, under the names that Kafka gives to the same refusal by a broker.
LOCAL_NAMES = {
    "_UNKNOWN_TOPIC": "UNKNOWN_TOPIC_OR_PARTITION",
    "_UNKNOWN_PARTITION": "UNKNOWN_TOPIC_OR_PARTITION",
    "_AUTO_OFFSET_RESET": "OFFSET_OUT_OF_RANGE",
}
BROKER_NAMES = {
    "MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
    "TOPIC_EXCEPTION": "INVALID_TOPIC_EXCEPTION",
}

write_lock = threading.Lock()
stopped = {}


def write(message):
    with write_lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def encode(data):
    return None if data is None else base64.b64encode(data).decode()


def decode(text):
    return None if text is None else base64.b64decode(text)


def error_name(error):
    if not isinstance(error, confluent_kafka.KafkaError):
        return ""
    name = error.name()
    return LOCAL_NAMES.get(name, BROKER_NAMES.get(name, name))


class Call:
    def __init__(self, args):
        self.id = args.get("id")
        self.args = args
        self.stop = stopped.setdefault(self.id, threading.Event())

    def progress(self, n):
        write({"id": self.id, "progress": n})

    def config(self, **more):
        config = {"bootstrap.servers": self.args["bootstrap"], "reconnect.backoff.max.ms": 200, "log_level": 2}
        config.update({k.replace("_", "."): v for k, v in more.items()})
        return config


def producer(call):
    args = call.args
    config = call.config(linger_ms=args.get("linger_ms", 0))
    config["acks"] = args.get("acks") or "all"
    config["compression.type"] = args.get("codec") or "none"
    config["enable.idempotence"] = args.get("idempotent", False)
    if args.get("batch_bytes"):
        config["batch.size"] = args["batch_bytes"]
    if args.get("max_request_bytes"):
        config["message.max.bytes"] = args["max_request_bytes"]
    return confluent_kafka.Producer(config)


def ack(partition, error, message):
    result = {"partition": partition, "offset": -1, "timestamp": -1}
    if error is not None:
        result["err"] = error_name(error) or str(error)
        return result
    if message.offset() is not None and message.offset() >= 0:
        result["offset"] = message.offset()
    if message.timestamp()[0] != confluent_kafka.TIMESTAMP_NOT_AVAILABLE:
        result["timestamp"] = message.timestamp()[1]
    return result


def produce(call):
    client = producer(call)
    records = call.args["records"]
    acks = [None] * len(records)
    for i, r in enumerate(records):
        def delivered(error, message, i=i, partition=r["partition"]):
            acks[i] = ack(partition, error, message)

        headers = [(h["key"], decode(h["value"])) for h in r.get("headers") or []]
        kwargs = {"timestamp": r["timestamp"]} if r.get("timestamp") else {}
        try:
            client.produce(call.args["topic"], partition=r["partition"], key=decode(r["key"]), value=decode(r["value"]),
                           headers=headers, on_delivery=delivered, **kwargs)
        except confluent_kafka.KafkaException as e:
            acks[i] = ack(r["partition"], e.args[0], None)
        client.poll(0)
        if call.args.get("one_by_one"):
            client.flush()
    client.flush()
    return acks


def stream(call):
    client = producer(call)
    window = threading.Semaphore(max(1, call.args.get("window", 1)))
    acks, acked = [], [0]
    i = 0
    while not call.stop.is_set():
        while not window.acquire(blocking=False):
            client.poll(1)
        acks.append(None)

        def delivered(error, message, i=i):
            acks[i] = ack(0, error, message)
            acked[0] += 1
            window.release()
            call.progress(acked[0])

        client.produce(call.args["topic"], partition=0, value=(call.args["prefix"] + str(i)).encode(), on_delivery=delivered)
        client.poll(0)
        i += 1
    client.flush()
    return acks


def consumer(call):
    args = call.args
    config = call.config(enable_auto_commit=False, enable_partition_eof=True)
    config["group.id"] = "assigned-by-hand"
    config["auto.offset.reset"] = {"": "error", "none": "error"}.get(args.get("reset", ""), args.get("reset"))
    config["isolation.level"] = "read_committed" if args.get("read_committed") else "read_uncommitted"
    config["check.crcs"] = True
    if args.get("max_wait_ms"):
        config["fetch.wait.max.ms"] = min(args["max_wait_ms"], 300000)
        config["socket.timeout.ms"] = 300000
    if args.get("max_fetch_bytes"):
        config["max.partition.fetch.bytes"] = args["max_fetch_bytes"]
    return confluent_kafka.Consumer(config)


def consume(call):
    special = {LATEST: confluent_kafka.OFFSET_END, EARLIEST: confluent_kafka.OFFSET_BEGINNING}
    topic, count = call.args["topic"], call.args.get("count", 0)
    start = {int(p): offset for p, offset in call.args["from"].items()}
    until = call.args.get("until_value", "").encode()
    client = consumer(call)
    records, open_partitions = [], set(start)
    try:
        client.assign([confluent_kafka.TopicPartition(topic, p, special.get(o, o)) for p, o in start.items()])
        while until or (len(records) < count if count else open_partitions):
            message = client.poll(1)
            if message is None:
                continue
            if message.error():
                if message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                    continue
                if message.error().retriable() or message.error().code() in (
                        confluent_kafka.KafkaError._TRANSPORT, confluent_kafka.KafkaError._ALL_BROKERS_DOWN):
                    continue
                raise confluent_kafka.KafkaException(message.error())
            records.append(record(message))
            call.progress(len(records))
            if until and message.value() == until:
                break
    finally:
        client.close()
    return records


def member(call):
    if call.args.get("die"):
        return dying_member(call)
    return read_in_group(call.args, call.config(), call.stop, call.progress)


def dying_member(call):
    """A member in a process of its own, which is killed when it has read enough."""
    child = subprocess.run([sys.executable, __file__, "member"], input=json.dumps({"args": call.args, "config": call.config()}),
                           capture_output=True, text=True, check=False)
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the member ended with {child.returncode}: {child.stderr[-500:]}")
    return json.loads(child.stdout)


def dying_member_main():
    given = json.loads(sys.stdin.readline())
    records = read_in_group(given["args"], given["config"], threading.Event(), lambda n: None,
                            last_word=lambda records: (print(json.dumps(records), flush=True), os.kill(os.getpid(), signal.SIGKILL)))
    raise RuntimeError(f"still alive after {len(records)} records")


def read_in_group(args, config, stop, progress, last_word=None):
    config.update({
        "group.id": args["group"], "enable.auto.commit": False, "auto.offset.reset": "earliest",
        "session.timeout.ms": args["session_ms"], "heartbeat.interval.ms": args["session_ms"] // 10,
    })
    client, records, count = confluent_kafka.Consumer(config), [], args["count"]
    try:
        client.subscribe([args["topic"]])
        while len(records) < count if count else not stop.is_set():
            read = {}
            for message in client.consume(min(100, count - len(records)) if count else 100, timeout=0.2):
                if message.error() is None:
                    records.append(record(message))
                    read[message.partition()] = message.offset() + 1
                elif not (message.error().retriable() or message.error().code() in (
                        confluent_kafka.KafkaError._TRANSPORT, confluent_kafka.KafkaError._ALL_BROKERS_DOWN)):
                    raise confluent_kafka.KafkaException(message.error())
            if read:
                try:
                    client.commit(offsets=[confluent_kafka.TopicPartition(args["topic"], p, o) for p, o in read.items()], asynchronous=False)
                except confluent_kafka.KafkaException as e:  # the next commit makes it good, or the partition is another's
                    print("a commit failed:", e, file=sys.stderr, flush=True)
                progress(len(records))
        if last_word:
            last_word(records)
    finally:
        client.close()
    return records


def record(message):
    kind, timestamp = message.timestamp()
    return {
        "partition": message.partition(), "offset": message.offset(), "timestamp": timestamp,
        "log_append": kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME,
        "key": encode(message.key()), "value": encode(message.value()),
        "headers": [{"key": k, "value": encode(v)} for k, v in message.headers() or []],
    }


def with_admin(call, work):
    """Runs work with an admin client that lives until the work is done: its futures die with it."""
    client = ck_admin.AdminClient(call.config())
    result = work(client)
    del client
    return result


def create_topic(call):
    new = ck_admin.NewTopic(call.args["topic"], call.args["partitions"], 1, config=call.args.get("configs") or {})
    with_admin(call, lambda a: a.create_topics([new])[call.args["topic"]].result())
    return {}


def delete_topic(call):
    with_admin(call, lambda a: a.delete_topics([call.args["topic"]])[call.args["topic"]].result())
    return {}


def create_partitions(call):
    new = ck_admin.NewPartitions(call.args["topic"], call.args["total"])
    with_admin(call, lambda a: a.create_partitions([new])[call.args["topic"]].result())
    return {}


def partitions(call):
    topics = confluent_kafka.TopicCollection([call.args["topic"]])
    description = with_admin(call, lambda a: a.describe_topics(topics)[call.args["topic"]].result())
    for p in description.partitions:
        if p.leader is None or p.leader.id < 0:
            raise RuntimeError(f"partition {p.id} has no leader")
    return len(description.partitions)


def topics(call):
    return sorted(with_admin(call, lambda a: a.list_topics(timeout=30).topics))


def topic_configs(call):
    resource = ck_admin.ConfigResource(ck_admin.ConfigResource.Type.TOPIC, call.args["topic"])
    entries = with_admin(call, lambda a: a.describe_configs([resource])[resource].result())
    return {name: entry.value for name, entry in entries.items()}


def delete_records(call):
    before = {LATEST: confluent_kafka.OFFSET_END}.get(call.args["before"], call.args["before"])
    partition = confluent_kafka.TopicPartition(call.args["topic"], call.args["partition"], before)
    return with_admin(call, lambda a: next(iter(a.delete_records([partition]).values())).result().low_watermark)


def list_offset(call):
    at = call.args["at"]
    spec = {LATEST: ck_admin.OffsetSpec.latest, EARLIEST: ck_admin.OffsetSpec.earliest,
            -3: ck_admin.OffsetSpec.max_timestamp}.get(at, lambda: ck_admin.OffsetSpec.for_timestamp(at))()
    partition = confluent_kafka.TopicPartition(call.args["topic"], call.args["partition"])
    result = with_admin(call, lambda a: next(iter(a.list_offsets({partition: spec}).values())).result())
    return {"offset": result.offset, "timestamp": result.timestamp}


OPERATIONS = {f.__name__: f for f in (
    produce, stream, consume, member, create_topic, delete_topic, create_partitions, partitions, topics, topic_configs,
    delete_records, list_offset)}


def run(call):
    try:
        answer = {"id": call.id, "ok": OPERATIONS[call.args["op"]](call)}
    except confluent_kafka.KafkaException as e:
        answer = {"id": call.id, "error": error_name(e.args[0]), "message": str(e.args[0])}
    except Exception as e:  # whatever it is, the other side must be told
        answer = {"id": call.id, "error": "", "message": repr(e)}
    stopped.pop(call.id, None)
    write(answer)


def main():
    for line in sys.stdin:
        args = json.loads(line)
        if args["op"] == "stop":
            stopped.setdefault(args["target"], threading.Event()).set()
            continue
        threading.Thread(target=run, args=(Call(args),), daemon=True).start()


if __name__ == "__main__":
    dying_member_main() if sys.argv[1:] == ["member"] else main()
