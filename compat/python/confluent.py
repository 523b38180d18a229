"""confluent-kafka (librdkafka inside) as a client of the suite."""

import threading

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka import admin as ck_admin

from lines import EARLIEST, LATEST, MAX_TIMESTAMP, Copy, ack, decode, kafka_name, record


def error_name(exception):
    error = exception.args[0] if isinstance(exception, confluent_kafka.KafkaException) else exception
    return kafka_name(error.name()) if isinstance(error, KafkaError) else ""


def passes(error):
    """Whether an error that a consumer tells goes away by itself."""
    return error.retriable() or error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


def settings(args, **more):
    config = {"bootstrap.servers": args["bootstrap"], "reconnect.backoff.max.ms": 200, "log_level": 2}
    config.update({k.replace("_", "."): v for k, v in more.items()})
    return config


def producer(call):
    args = call.args
    config = settings(args, linger_ms=args.get("linger_ms", 0))
    config["acks"] = args.get("acks") or "all"
    config["compression.type"] = args.get("codec") or "none"
    config["enable.idempotence"] = args.get("idempotent", False)
    config["request.timeout.ms"] = 100_000  # what a busy machine is slow to answer would be sent again
    if args.get("batch_bytes"):
        config["batch.size"] = args["batch_bytes"]
    if args.get("max_request_bytes"):
        config["message.max.bytes"] = args["max_request_bytes"]
    return confluent_kafka.Producer(config)


def told(partition, error, message):
    if error is not None:
        return ack(partition, err=error_name(error) or str(error))
    kind, timestamp = message.timestamp()
    offset = message.offset()
    return ack(partition, -1 if offset is None or offset < 0 else offset, -1 if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE else timestamp)


def produce(call):
    client = producer(call)
    records = call.args["records"]
    acks = [None] * len(records)
    for i, r in enumerate(records):
        def delivered(error, message, i=i, partition=r["partition"]):
            acks[i] = told(partition, error, message)

        headers = [(h["key"], decode(h["value"])) for h in r.get("headers") or []]
        kwargs = {"timestamp": r["timestamp"]} if r.get("timestamp") else {}
        try:
            client.produce(call.args["topic"], partition=r["partition"], key=decode(r["key"]), value=decode(r["value"]),
                           headers=headers, on_delivery=delivered, **kwargs)
        except confluent_kafka.KafkaException as e:
            acks[i] = told(r["partition"], e.args[0], None)
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
            acks[i] = told(0, error, message)
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
    config = settings(args, enable_auto_commit=False, enable_partition_eof=True)
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
        client.assign([TopicPartition(topic, p, special.get(o, o)) for p, o in start.items()])
        while until or (len(records) < count if count else open_partitions):
            message = client.poll(1)
            if message is None:
                continue
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                    continue
                if passes(message.error()):
                    continue
                raise confluent_kafka.KafkaException(message.error())
            records.append(received(message))
            call.progress(len(records))
            if until and message.value() == until:
                break
    finally:
        client.close()
    return records


def received(message):
    kind, timestamp = message.timestamp()
    return record(message.partition(), message.offset(), timestamp, kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME,
                  message.key(), message.value(), message.headers())


def read_in_group(args, member):
    config = settings(args, group_id=member.group, enable_auto_commit=False, auto_offset_reset="earliest")
    if args.get("protocol") == "consumer":  # the server says how long a session is
        config["group.protocol"] = "consumer"
        if args.get("assignor"):
            config["group.remote.assignor"] = args["assignor"]
    else:
        config |= {"session.timeout.ms": member.session_ms, "heartbeat.interval.ms": member.heartbeat_ms}
    if args.get("instance_id"):
        config["group.instance.id"] = args["instance_id"]
    client = confluent_kafka.Consumer(config)
    subscription = "^" + args["pattern"] if args.get("pattern") else member.topic
    try:
        client.subscribe([subscription], on_assign=lambda c, partitions: place(c, partitions, member))
        while member.room():
            batch = []
            for message in client.consume(member.room(), timeout=0.2):
                if message.error() is None:
                    batch.append(received(message))
                elif not passes(message.error()):
                    raise confluent_kafka.KafkaException(message.error())
            member.take(batch)
            commit_due(client, member)
        for _ in range(20):
            if commit_due(client, member):
                break
            client.consume(1, timeout=0)  # lets it learn of its new generation, and brings nothing that is handed on
        member.crash()
    finally:
        client.close()


def place(client, partitions, member):
    """Moves the partitions that came for the first time to where the member is to begin."""
    new = member.to_place({p.partition for p in partitions})
    if not new:
        return
    seek, at = member.args["seek"], member.args.get("seek_at", 0)
    for p in partitions:
        if p.partition in new:
            p.offset = confluent_kafka.OFFSET_BEGINNING if seek == "beginning" else at
    if seek == "time":
        found = client.offsets_for_times([p for p in partitions if p.partition in new], timeout=30)
        offsets = {p.partition: p.offset for p in found}
        for p in partitions:
            p.offset = offsets.get(p.partition, p.offset)
    client.assign(partitions)


def commit_due(client, member):
    """Commits what is due and says whether nothing is left."""
    due = member.due({p.partition for p in client.assignment()})
    if due:
        try:
            client.commit(offsets=[TopicPartition(member.topic, p, o) for p, o in due.items()], asynchronous=False)
            member.settled(due)
        except confluent_kafka.KafkaException as e:
            member.not_settled(e)
            return False
    return True


def transactional(call):
    # When all brokers are down it would begin anew by default, and then send the offsets to a coordinator that it has forgotten, for good.
    config = settings(call.args, transactional_id=call.args["transactional_id"], metadata_recovery_strategy="none")
    if call.args.get("timeout_ms"):
        config["transaction.timeout.ms"] = call.args["timeout_ms"]
    client = confluent_kafka.Producer(config)
    client.init_transactions(60)
    return client


def transact(call):
    client, answers = transactional(call), []
    for transaction in call.args["transactions"]:
        acks = [None] * len(transaction["records"])
        client.begin_transaction()
        for i, r in enumerate(transaction["records"]):
            def delivered(error, message, acks=acks, i=i, partition=r["partition"]):
                acks[i] = told(partition, error, message)

            client.produce(call.args["topic"], partition=r["partition"], key=decode(r["key"]), value=decode(r["value"]), on_delivery=delivered)
        client.flush()
        answers.append(acks)
        call.linger(transaction, len(answers))
        if transaction["end"] == "abort":
            client.abort_transaction(60)
        else:
            client.commit_transaction(60)
    return answers


def copy(call):
    task = Copy(call)
    producer = transactional(call)
    source = confluent_kafka.Consumer(settings(
        call.args, group_id=task.group, enable_auto_commit=False, auto_offset_reset="earliest", isolation_level="read_committed",
        session_timeout_ms=task.session_ms, heartbeat_interval_ms=task.heartbeat_ms))
    try:
        source.subscribe([task.source])
        while task.going():
            batch = []
            for message in source.consume(task.batch, timeout=0.2):
                if message.error() is None:
                    batch.append(message)
                elif not passes(message.error()):
                    raise confluent_kafka.KafkaException(message.error())
            if batch:
                copy_batch(task, source, producer, batch)
    finally:
        source.close()
    return task.result


def copy_batch(task, source, producer, batch):
    producer.begin_transaction()
    try:
        for m in batch:
            producer.produce(task.target, partition=m.partition(), key=m.key(), value=m.value(), headers=m.headers())
        positions = {m.partition(): m.offset() + 1 for m in batch}
        producer.send_offsets_to_transaction([TopicPartition(task.source, p, o) for p, o in positions.items()],
                                             source.consumer_group_metadata(), 60)
        if task.call.die:
            producer.flush()
            task.may_die()
        if task.ends_well():
            producer.commit_transaction(60)
            task.committed(len(batch))
            return
        error = None
    except confluent_kafka.KafkaException as e:
        if not e.args[0].txn_requires_abort():
            raise
        error = e
    producer.abort_transaction(60)
    task.aborted(error)
    # Back to where the last transaction that was committed has ended.
    for p in source.committed(source.assignment(), timeout=60):
        p.offset = confluent_kafka.OFFSET_BEGINNING if p.offset < 0 else p.offset
        source.seek(p)


def with_admin(call, work):
    """Runs work with an admin client that lives until the work is done: its futures die with it."""
    client = ck_admin.AdminClient(settings(call.args))
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
    partition = TopicPartition(call.args["topic"], call.args["partition"], before)
    return with_admin(call, lambda a: next(iter(a.delete_records([partition]).values())).result().low_watermark)


def list_offset(call):
    at = call.args["at"]
    spec = {LATEST: ck_admin.OffsetSpec.latest, EARLIEST: ck_admin.OffsetSpec.earliest,
            MAX_TIMESTAMP: ck_admin.OffsetSpec.max_timestamp}.get(at, lambda: ck_admin.OffsetSpec.for_timestamp(at))()
    partition = TopicPartition(call.args["topic"], call.args["partition"])
    result = with_admin(call, lambda a: next(iter(a.list_offsets({partition: spec}).values())).result())
    return {"offset": result.offset, "timestamp": result.timestamp}


def commit(call):
    wanted = [TopicPartition(call.args["topic"], int(p), o) for p, o in call.args["offsets"].items()]
    request = confluent_kafka.ConsumerGroupTopicPartitions(call.args["group"], wanted)
    answer = with_admin(call, lambda a: a.alter_consumer_group_offsets([request])[call.args["group"]].result())
    for p in answer.topic_partitions:
        if p.error:
            raise confluent_kafka.KafkaException(p.error)
    return {}


def committed(call):
    request = confluent_kafka.ConsumerGroupTopicPartitions(call.args["group"])
    answer = with_admin(call, lambda a: a.list_consumer_group_offsets([request])[call.args["group"]].result())
    return {p.partition: p.offset for p in answer.topic_partitions if p.topic == call.args["topic"] and p.offset >= 0}


OPERATIONS = {f.__name__: f for f in (
    produce, stream, consume, create_topic, delete_topic, create_partitions, partitions, topics, topic_configs,
    delete_records, list_offset, commit, committed, transact, copy)}
