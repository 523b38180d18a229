"""aiokafka as a client of the suite. Each operation runs in an event loop of its own."""

import asyncio
import functools

import aiokafka
from aiokafka import TopicPartition, errors
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from lines import EARLIEST, LATEST, Copy, ack, decode, kafka_name, record


class Nothing:
    """Stands for null until it is serialized: the library refuses a record whose key and value are both None before that."""


def error_name(exception):
    if isinstance(exception, errors.ProducerFenced):  # which it says instead of the broker
        return "PRODUCER_FENCED"
    return kafka_name(exception.message or "") if isinstance(exception, errors.BrokerResponseError) else ""


def check(code, message=None):
    if code:
        raise errors.for_code(code)(message)


def producer(args):
    acks = args.get("acks") or "all"
    config = {"bootstrap_servers": args["bootstrap"], "linger_ms": args.get("linger_ms", 0), "acks": acks if acks == "all" else int(acks)}
    config["key_serializer"] = lambda key: None if isinstance(key, Nothing) else key
    config["compression_type"] = None if args.get("codec") in (None, "", "none") else args["codec"]
    config["enable_idempotence"] = args.get("idempotent", False)
    config["request_timeout_ms"] = 100_000  # what a busy machine is slow to answer would be sent again
    if args.get("batch_bytes"):
        config["max_batch_size"] = args["batch_bytes"]
    if args.get("max_request_bytes"):
        config["max_request_size"] = args["max_request_bytes"]
    return aiokafka.AIOKafkaProducer(**config)


async def told(partition, future):
    try:
        done = await future
    except errors.KafkaError as e:
        return ack(partition, err=error_name(e) or repr(e))
    return ack(partition) if done is None else ack(partition, done.offset, done.timestamp)  # None: acks=0


async def send(client, topic, r):
    key = decode(r["key"])
    headers = [(h["key"], decode(h["value"])) for h in r.get("headers") or []]
    return await client.send(topic, partition=r["partition"], key=Nothing() if key is None else key, value=decode(r["value"]),
                             headers=headers, timestamp_ms=r.get("timestamp") or None)


async def produce(call):
    async with producer(call.args) as client:
        futures = []
        for r in call.args["records"]:
            futures.append(await send(client, call.args["topic"], r))
            if call.args.get("one_by_one"):
                await asyncio.wait(futures[-1:])
        return [await told(r["partition"], f) for r, f in zip(call.args["records"], futures)]


async def stream(call):
    window = asyncio.Semaphore(max(1, call.args.get("window", 1)))
    acked = 0

    def delivered(_):
        nonlocal acked
        acked += 1
        window.release()
        call.progress(acked)

    async with producer(call.args) as client:
        futures = []
        while not call.stop.is_set():
            await window.acquire()
            future = await client.send(call.args["topic"], partition=0, value=(call.args["prefix"] + str(len(futures))).encode())
            future.add_done_callback(delivered)
            futures.append(future)
        return [await told(0, f) for f in futures]


def consumer(args):
    config = {"bootstrap_servers": args["bootstrap"], "enable_auto_commit": False, "auto_offset_reset": args.get("reset") or "none"}
    config["isolation_level"] = "read_committed" if args.get("read_committed") else "read_uncommitted"
    if args.get("max_wait_ms"):
        config.update(fetch_max_wait_ms=args["max_wait_ms"], request_timeout_ms=args["max_wait_ms"] + 10_000)
    if args.get("max_fetch_bytes"):
        config["max_partition_fetch_bytes"] = args["max_fetch_bytes"]
    return aiokafka.AIOKafkaConsumer(**config)


async def consume(call):
    topic, count = call.args["topic"], call.args.get("count", 0)
    start = {TopicPartition(topic, int(p)): offset for p, offset in call.args["from"].items()}
    until = call.args.get("until_value", "").encode()
    records = []
    async with consumer(call.args) as client:
        client.assign(list(start))
        ends = await client.end_offsets(list(start)) if not until and not count else {}
        for partition, offset in start.items():
            if offset == LATEST:
                await client.seek_to_end(partition)
            elif offset == EARLIEST:
                await client.seek_to_beginning(partition)
            else:
                client.seek(partition, offset)
        while until or len(records) < count or await behind(client, ends):
            batches = await client.getmany(timeout_ms=1000, max_records=count - len(records) if count else None)
            for batch in batches.values():
                records += [received(r) for r in batch]
                call.progress(len(records))
                if until and any(r.value == until for r in batch):
                    return records
    return records


async def behind(client, ends):
    for partition, end in ends.items():
        if await client.position(partition) < end:
            return True
    return False


def received(r):
    return record(r.partition, r.offset, r.timestamp, r.timestamp_type == 1, r.key, r.value, r.headers)


class Placer(ConsumerRebalanceListener):
    """Moves the partitions that come for the first time to where the member is to begin."""

    def __init__(self, client, member):
        self.client, self.member = client, member

    def on_partitions_revoked(self, revoked):
        pass

    async def on_partitions_assigned(self, assigned):
        new = [TopicPartition(self.member.topic, p) for p in self.member.to_place({p.partition for p in assigned})]
        if not new:
            return
        seek, at = self.member.args["seek"], self.member.args.get("seek_at", 0)
        if seek == "beginning":
            await self.client.seek_to_beginning(*new)
        elif seek == "offset":
            for p in new:
                self.client.seek(p, at)
        else:
            for p, found in (await self.client.offsets_for_times({p: at for p in new})).items():
                self.client.seek(p, found.offset)


async def read_along(args, member):
    client = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=args["bootstrap"], group_id=member.group, enable_auto_commit=False, auto_offset_reset="earliest",
        session_timeout_ms=member.session_ms, heartbeat_interval_ms=member.heartbeat_ms)
    client.subscribe([member.topic], listener=Placer(client, member))
    async with client:
        while member.room():
            batches = await client.getmany(timeout_ms=200, max_records=member.room())
            member.take([received(r) for batch in batches.values() for r in batch])
            await commit_due(client, member)
        for _ in range(20):
            if await commit_due(client, member):
                break
            await asyncio.sleep(0.1)
        member.crash()


async def commit_due(client, member):
    """Commits what is due and says whether nothing is left."""
    due = member.due({p.partition for p in client.assignment()})
    if due:
        try:
            await client.commit({TopicPartition(member.topic, p): o for p, o in due.items()})
            member.settled(due)
        except errors.KafkaError as e:
            member.not_settled(e)
            return False
    return True


def read_in_group(args, member):
    asyncio.run(read_along(args, member))


def transactional(args):
    config = {"transaction_timeout_ms": args["timeout_ms"]} if args.get("timeout_ms") else {}
    return aiokafka.AIOKafkaProducer(bootstrap_servers=args["bootstrap"], transactional_id=args["transactional_id"],
                                     key_serializer=lambda key: None if isinstance(key, Nothing) else key, **config)


async def transact(call):
    answers = []
    async with transactional(call.args) as client:
        for transaction in call.args["transactions"]:
            await client.begin_transaction()
            futures = [await send(client, call.args["topic"], r) for r in transaction["records"]]
            answers.append([await told(r["partition"], f) for r, f in zip(transaction["records"], futures)])
            await asyncio.to_thread(call.linger, transaction, len(answers))
            if transaction["end"] == "abort":
                await client.abort_transaction()
            else:
                await client.commit_transaction()
    return answers


async def copy(call):
    task = Copy(call)
    source = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=call.args["bootstrap"], group_id=task.group, enable_auto_commit=False, auto_offset_reset="earliest",
        isolation_level="read_committed", session_timeout_ms=task.session_ms, heartbeat_interval_ms=task.heartbeat_ms)
    source.subscribe([task.source])
    async with transactional(call.args) as client, source:
        while task.going():
            batches = await source.getmany(timeout_ms=200, max_records=task.batch)
            if batches:
                await copy_batches(task, source, client, batches)
    return task.result


async def copy_batches(task, source, client, batches):
    await client.begin_transaction()
    error = None
    try:
        for r in (r for batch in batches.values() for r in batch):
            await client.send(task.target, partition=r.partition, key=Nothing() if r.key is None else r.key, value=r.value, headers=list(r.headers))
        await client.send_offsets_to_transaction({p: batch[-1].offset + 1 for p, batch in batches.items()}, task.group)
        if task.call.die:
            await client.flush()
            task.may_die()
        if task.ends_well():
            await client.commit_transaction()
            task.committed(sum(len(batch) for batch in batches.values()))
            return
    except errors.ProducerFenced:
        raise
    except errors.KafkaError as e:
        error = e
    await client.abort_transaction()
    task.aborted(error)
    for p in source.assignment():  # back to where the last transaction that was committed has ended
        at = await source.committed(p)
        if at is None:
            await source.seek_to_beginning(p)
        else:
            source.seek(p, at)


async def with_admin(call, work):
    client = AIOKafkaAdminClient(bootstrap_servers=call.args["bootstrap"])
    await client.start()
    try:
        return await work(client)
    finally:
        await client.close()


async def create_topic(call):
    new = NewTopic(call.args["topic"], call.args["partitions"], 1, topic_configs=call.args.get("configs") or {})
    for _, code, *message in (await with_admin(call, lambda a: a.create_topics([new]))).topic_errors:
        check(code, *message)
    return {}


async def delete_topic(call):
    for _, code in (await with_admin(call, lambda a: a.delete_topics([call.args["topic"]]))).topic_error_codes:
        check(code)
    return {}


async def create_partitions(call):
    new = {call.args["topic"]: NewPartitions(call.args["total"])}
    for _, code, message in (await with_admin(call, lambda a: a.create_partitions(new))).topic_errors:
        check(code, message)
    return {}


async def partitions(call):
    topic = (await with_admin(call, lambda a: a.describe_topics([call.args["topic"]])))[0]
    check(topic["error_code"])
    for p in topic["partitions"]:
        if p["leader"] < 0:
            raise RuntimeError(f"partition {p['partition']} has no leader")
    return len(topic["partitions"])


async def topics(call):
    return sorted(await with_admin(call, lambda a: a.list_topics()))


async def topic_configs(call):
    resource = ConfigResource(ConfigResourceType.TOPIC, call.args["topic"])
    answer = (await with_admin(call, lambda a: a.describe_configs([resource])))[0]
    code, message, _, _, entries = answer.resources[0]
    check(code, message)
    return {entry[0]: entry[1] for entry in entries}


async def delete_records(call):
    partition = TopicPartition(call.args["topic"], call.args["partition"])
    return (await with_admin(call, lambda a: a.delete_records({partition: RecordsToDelete(call.args["before"])})))[partition]


async def list_offset(call):
    partition, at = TopicPartition(call.args["topic"], call.args["partition"]), call.args["at"]
    async with aiokafka.AIOKafkaConsumer(bootstrap_servers=call.args["bootstrap"]) as client:
        if at == LATEST:
            return {"offset": (await client.end_offsets([partition]))[partition], "timestamp": -1}
        if at == EARLIEST:
            return {"offset": (await client.beginning_offsets([partition]))[partition], "timestamp": -1}
        found = (await client.offsets_for_times({partition: at}))[partition]
        return {"offset": found.offset, "timestamp": found.timestamp} if found else {"offset": -1, "timestamp": -1}


async def commit(call):
    offsets = {TopicPartition(call.args["topic"], int(p)): o for p, o in call.args["offsets"].items()}
    async with aiokafka.AIOKafkaConsumer(bootstrap_servers=call.args["bootstrap"], group_id=call.args["group"], enable_auto_commit=False) as client:
        client.assign(list(offsets))
        await client.commit(offsets)
    return {}


async def committed(call):
    found = await with_admin(call, lambda a: a.list_consumer_group_offsets(call.args["group"]))
    return {p.partition: o.offset for p, o in found.items() if p.topic == call.args["topic"] and o.offset >= 0}


def in_a_loop(operation):
    @functools.wraps(operation)
    def call_it(call):
        return asyncio.run(operation(call))
    return call_it


OPERATIONS = {f.__name__: in_a_loop(f) for f in (
    produce, stream, consume, create_topic, delete_topic, create_partitions, partitions, topics, topic_configs,
    delete_records, list_offset, commit, committed, transact, copy)}
