"""kafka-python as a client of the suite."""

import sys
import threading

import kafka
from kafka import TopicPartition
from kafka import errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.serializer import Serializer
from kafka.structs import OffsetAndMetadata

from lines import EARLIEST, LATEST, Copy, ack, decode, kafka_name, record


class Nothing:
    """Stands for null until it is serialized: the library refuses a record whose key and value are both None before that."""


class NullSerializer(Serializer):
    def serialize(self, topic, headers, data):
        return None if isinstance(data, Nothing) else data


def error_name(exception):
    if isinstance(exception, errors.BrokerResponseError):
        return kafka_name(exception.message or "")
    if isinstance(exception, ValueError) and "Topic" in str(exception):  # a name that it refuses by itself
        return "INVALID_TOPIC_EXCEPTION"
    return ""


def settings(args, **more):
    return {"bootstrap_servers": args["bootstrap"], "reconnect_backoff_max_ms": 200, **more}


def producer(call):
    args = call.args
    acks = args.get("acks") or "all"
    config = settings(args, linger_ms=args.get("linger_ms", 0), acks=acks if acks == "all" else int(acks), key_serializer=NullSerializer())
    config["compression_type"] = None if args.get("codec") in (None, "", "none") else args["codec"]
    config["enable_idempotence"] = args.get("idempotent", False)
    config["request_timeout_ms"] = 100_000  # what a busy machine is slow to answer would be sent again
    if not config["enable_idempotence"]:
        config["max_in_flight_requests_per_connection"] = 1  # what is sent again keeps its place
    if args.get("batch_bytes"):
        config["batch_size"] = args["batch_bytes"]
    if args.get("max_request_bytes"):
        config["max_request_size"] = args["max_request_bytes"]
    return kafka.KafkaProducer(**config)


def told(partition, future):
    if future.failed():
        return ack(partition, err=error_name(future.exception) or repr(future.exception))
    return ack(partition, future.value.offset, future.value.timestamp)


def send(client, topic, r):
    key = decode(r["key"])
    headers = [(h["key"], decode(h["value"])) for h in r.get("headers") or []]
    return client.send(topic, partition=r["partition"], key=Nothing() if key is None else key, value=decode(r["value"]),
                       headers=headers, timestamp_ms=r.get("timestamp") or None)


def produce(call):
    with producer(call) as client:
        futures = []
        for r in call.args["records"]:
            futures.append(send(client, call.args["topic"], r))
            if call.args.get("one_by_one"):
                client.flush()
        client.flush()
        return [told(r["partition"], f) for r, f in zip(call.args["records"], futures)]


def stream(call):
    window = threading.Semaphore(max(1, call.args.get("window", 1)))
    acked = [0]

    def delivered(_):
        acked[0] += 1
        window.release()
        call.progress(acked[0])

    with producer(call) as client:
        futures = []
        while not call.stop.is_set():
            window.acquire()
            future = client.send(call.args["topic"], partition=0, value=(call.args["prefix"] + str(len(futures))).encode())
            futures.append(future.add_both(delivered))
        client.flush()
        return [told(0, f) for f in futures]


def consumer(call):
    args = call.args
    config = settings(args, enable_auto_commit=False, auto_offset_reset=args.get("reset") or "none")
    config["isolation_level"] = "read_committed" if args.get("read_committed") else "read_uncommitted"
    if args.get("max_wait_ms"):
        config.update(fetch_max_wait_ms=args["max_wait_ms"], request_timeout_ms=args["max_wait_ms"] + 10_000)
    if args.get("max_fetch_bytes"):
        config["max_partition_fetch_bytes"] = args["max_fetch_bytes"]
    return kafka.KafkaConsumer(**config)


def consume(call):
    topic, count = call.args["topic"], call.args.get("count", 0)
    start = {TopicPartition(topic, int(p)): offset for p, offset in call.args["from"].items()}
    until = call.args.get("until_value", "").encode()
    client, records = consumer(call), []
    try:
        client.assign(list(start))
        ends = client.end_offsets(list(start)) if not until and not count else {}
        for partition, offset in start.items():
            if offset == LATEST:
                client.seek_to_end(partition)
            elif offset == EARLIEST:
                client.seek_to_beginning(partition)
            else:
                client.seek(partition, offset)
        while until or len(records) < count or any(client.position(p) < end for p, end in ends.items()):
            for batch in poll(client, 1000, count - len(records) if count else None).values():
                records += [received(r) for r in batch]
                call.progress(len(records))
                if until and any(r.value == until for r in batch):
                    return records
    finally:
        client.close()
    return records


def poll(client, timeout_ms, at_most):
    """Reads what is there; that the server is away goes by itself, though the library tells it as an error at times."""
    try:
        return client.poll(timeout_ms, max_records=at_most)
    except errors.KafkaConnectionError as e:
        print("while the server is away:", repr(e), file=sys.stderr, flush=True)
        return {}


def received(r):
    return record(r.partition, r.offset, r.timestamp, r.timestamp_type == 1, r.key, r.value, r.headers)


def read_in_group(args, member):
    config = settings(args, group_id=member.group, enable_auto_commit=False, auto_offset_reset="earliest",
                      session_timeout_ms=member.session_ms, heartbeat_interval_ms=member.heartbeat_ms)
    client = kafka.KafkaConsumer(**config)
    try:
        # A leader that learns of the topic only while it joins will join again, and loses its assignment when a poll ends meanwhile.
        client.partitions_for_topic(member.topic)
        client.subscribe([member.topic])
        while member.room():
            batches = poll(client, 500, member.room())
            place(client, member, batches)
            member.take([received(r) for batch in batches.values() for r in batch])
            commit_due(client, member)
        for _ in range(20):
            if commit_due(client, member):
                break
            poll(client, 0, 1)  # lets it learn of its new generation, and brings nothing that is handed on
        member.crash()
    finally:
        client.close()


def place(client, member, batches):
    """Moves the partitions that came for the first time to where the member is to begin, and drops what was read of them."""
    new = [TopicPartition(member.topic, p) for p in member.to_place({p.partition for p in client.assignment()})]
    if not new:
        return
    seek, at = member.args["seek"], member.args.get("seek_at", 0)
    if seek == "beginning":
        client.seek_to_beginning(*new)
    elif seek == "offset":
        for p in new:
            client.seek(p, at)
    else:
        for p, found in client.offsets_for_times({p: at for p in new}).items():
            client.seek(p, found.offset)
    for p in new:
        batches.pop(p, None)


def commit_due(client, member):
    """Commits what is due and says whether nothing is left."""
    due = member.due({p.partition for p in client.assignment()})
    if due:
        try:
            client.commit({TopicPartition(member.topic, p): OffsetAndMetadata(o, "", -1) for p, o in due.items()}, timeout_ms=10_000)
            member.settled(due)
        except errors.KafkaError as e:
            member.not_settled(e)
            return False
    return True


def transactional(call):
    config = settings(call.args, transactional_id=call.args["transactional_id"], key_serializer=NullSerializer())
    if call.args.get("timeout_ms"):
        config["transaction_timeout_ms"] = call.args["timeout_ms"]
    client = kafka.KafkaProducer(**config)
    client.init_transactions()
    return client


def transact(call):
    answers = []
    with transactional(call) as client:
        for transaction in call.args["transactions"]:
            client.begin_transaction()
            futures = [send(client, call.args["topic"], r) for r in transaction["records"]]
            client.flush()
            answers.append([told(r["partition"], f) for r, f in zip(transaction["records"], futures)])
            call.linger(transaction, len(answers))
            if transaction["end"] == "abort":
                client.abort_transaction()
            else:
                client.commit_transaction()
    return answers


def copy(call):
    task = Copy(call)
    producer = transactional(call)
    source = kafka.KafkaConsumer(**settings(call.args, group_id=task.group, enable_auto_commit=False, auto_offset_reset="earliest",
                                            isolation_level="read_committed", session_timeout_ms=task.session_ms,
                                            heartbeat_interval_ms=task.heartbeat_ms))
    try:
        source.partitions_for_topic(task.source)
        source.subscribe([task.source])
        while task.going():
            batches = poll(source, 500, task.batch)
            if batches:
                copy_batches(task, source, producer, batches)
    finally:
        source.close()
        producer.close()
    return task.result


def copy_batches(task, source, producer, batches):
    producer.begin_transaction()
    try:
        for r in (r for batch in batches.values() for r in batch):
            producer.send(task.target, partition=r.partition, key=Nothing() if r.key is None else r.key, value=r.value, headers=list(r.headers))
        positions = {p: OffsetAndMetadata(batch[-1].offset + 1, "", -1) for p, batch in batches.items()}
        producer.send_offsets_to_transaction(positions, source.group_metadata())
        if task.call.die:
            producer.flush()
            task.may_die()
        if task.ends_well():
            producer.commit_transaction()
            task.committed(sum(len(batch) for batch in batches.values()))
            return
        error = None
    except errors.ProducerFencedError:
        raise
    except errors.KafkaError as e:
        error = e
    producer.abort_transaction()
    task.aborted(error)
    for p in source.assignment():  # back to where the last transaction that was committed has ended
        at = source.committed(p)
        source.seek_to_beginning(p) if at is None else source.seek(p, at)


def with_admin(call, work):
    client = KafkaAdminClient(**settings(call.args))
    try:
        return work(client)
    finally:
        client.close()


def create_topic(call):
    new = {call.args["topic"]: {"num_partitions": call.args["partitions"], "replication_factor": 1, "configs": call.args.get("configs") or {}}}
    with_admin(call, lambda a: a.create_topics(new))
    return {}


def delete_topic(call):
    with_admin(call, lambda a: a.delete_topics([call.args["topic"]]))
    return {}


def create_partitions(call):
    with_admin(call, lambda a: a.create_partitions({call.args["topic"]: call.args["total"]}))
    return {}


def partitions(call):
    topic = with_admin(call, lambda a: a.describe_topics([call.args["topic"]]))[0]
    if topic["error_code"]:
        raise errors.for_code(topic["error_code"])(topic["name"])
    for p in topic["partitions"]:
        if p["leader_id"] < 0:
            raise RuntimeError(f"partition {p['partition_index']} has no leader")
    return len(topic["partitions"])


def topics(call):
    return sorted(with_admin(call, lambda a: a.list_topics()))


def topic_configs(call):
    resource = ConfigResource(ConfigResourceType.TOPIC, call.args["topic"])
    answer = with_admin(call, lambda a: a.describe_configs([resource], config_filter="all"))
    return {name: entry["value"] for name, entry in answer["topic"][call.args["topic"]].items()}


def delete_records(call):
    partition = TopicPartition(call.args["topic"], call.args["partition"])
    return with_admin(call, lambda a: a.delete_records({partition: call.args["before"]}))[partition]["low_watermark"]


def list_offset(call):
    partition = TopicPartition(call.args["topic"], call.args["partition"])
    found = with_admin(call, lambda a: a.list_partition_offsets({partition: call.args["at"]}))[partition]
    return {"offset": found.offset, "timestamp": found.timestamp}


def commit(call):
    offsets = {TopicPartition(call.args["topic"], int(p)): OffsetAndMetadata(o, "", -1) for p, o in call.args["offsets"].items()}
    for error in with_admin(call, lambda a: a.alter_group_offsets(call.args["group"], offsets)).values():
        if error is not errors.NoError:
            raise error()
    return {}


def committed(call):
    found = with_admin(call, lambda a: a.list_group_offsets(call.args["group"]))[call.args["group"]]
    return {p.partition: o.offset for p, o in found.items() if p.topic == call.args["topic"] and o.offset >= 0}


OPERATIONS = {f.__name__: f for f in (
    produce, stream, consume, create_topic, delete_topic, create_partitions, partitions, topics, topic_configs,
    delete_records, list_offset, commit, committed, transact, copy)}
