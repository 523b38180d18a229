"""What the Python clients of the suite share: the words of ../suite/client.go in Python, and what a member of a group keeps in mind.

It holds no client library: those are in confluent.py, pure.py (kafka-python) and aio.py (aiokafka), which driver.py loads by name.
"""

import base64
import json
import sys
import threading

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3

# Old names, and names of errors that a client finds by itself, under the names that Kafka gives to the same refusal by a broker.
KAFKA_NAMES = {
    "_UNKNOWN_TOPIC": "UNKNOWN_TOPIC_OR_PARTITION",
    "_UNKNOWN_PARTITION": "UNKNOWN_TOPIC_OR_PARTITION",
    "_AUTO_OFFSET_RESET": "OFFSET_OUT_OF_RANGE",
    "MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
    "_FENCED": "PRODUCER_FENCED",
    "TOPIC_EXCEPTION": "INVALID_TOPIC_EXCEPTION",
    "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
}

write_lock = threading.Lock()


def write(message):
    with write_lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def encode(data):
    return None if data is None else base64.b64encode(data).decode()


def decode(text):
    return None if text is None else base64.b64decode(text)


def kafka_name(name):
    return KAFKA_NAMES.get(name, name)


def record(partition, offset, timestamp, log_append, key, value, headers):
    return {
        "partition": partition, "offset": offset, "timestamp": timestamp, "log_append": log_append,
        "key": encode(key), "value": encode(value), "headers": [{"key": k, "value": encode(v)} for k, v in headers or ()],
    }


def ack(partition, offset=-1, timestamp=-1, err=""):
    result = {"partition": partition, "offset": offset, "timestamp": timestamp}
    if err:
        result["err"] = err
    return result


class Call:
    """One request that is under way. One that is to die has nobody to tell of its progress."""

    def __init__(self, args, stop, die=None):
        self.id = args.get("id")
        self.args = args
        self.stop = stop
        self.die = die

    def progress(self, n):
        if not self.die:
            write({"id": self.id, "progress": n})

    def linger(self, transaction, begun):
        """Tells that a transaction is open that is to stay so, and waits until it may end."""
        if transaction["end"] == "linger":
            self.progress(begun)
            self.stop.wait()


class Member:
    """What a member of a group has read, when it has read enough, and what it is to commit.

    An adapter's loop asks room(), hands over what it read by take(), commits what due() says, and tells by settled() that this
    went well. What failed is due again, unless the partition has become another member's.
    """

    def __init__(self, args, stop, progress, die=None):
        self.args, self.records = args, []
        self.group, self.topic = args["group"], args["topic"]
        self.session_ms, self.heartbeat_ms = args["session_ms"], args["session_ms"] // 10
        self._stop, self._progress, self._die = stop, progress, die
        self._count, self._limit = args.get("count", 0), args.get("commit", 0)
        self._pending = {}
        self._placed = set()

    def room(self):
        """How many records may be read now; 0 ends the reading."""
        if self._count:
            return min(100, self._count - len(self.records))
        return 0 if self._stop.is_set() else 100

    def take(self, records):
        before = len(self.records)
        self.records += records
        if self._limit > 0:
            if before < self._limit <= len(self.records):
                self._want(self.records[:self._limit])
        elif self._limit == 0:
            self._want(records)
        if records:
            self._progress(len(self.records))

    def _want(self, records):
        for r in records:
            self._pending[r["partition"]] = r["offset"] + 1

    def due(self, owned):
        """The positions to commit now, of partitions that are the member's own."""
        self._pending = {p: offset for p, offset in self._pending.items() if p in owned}
        return dict(self._pending)

    def settled(self, offsets):
        self._pending = {p: offset for p, offset in self._pending.items() if offsets.get(p) != offset}

    @staticmethod
    def not_settled(error):
        print("a commit failed:", repr(error), file=sys.stderr, flush=True)

    def to_place(self, owned):
        """The partitions that the member must move to another position, since it got them for the first time."""
        new = set(owned) - self._placed
        self._placed |= new
        return new if self.args.get("seek") else set()

    def crash(self):
        """The end of a member that is to die; it does not return then."""
        if self._die:
            self._die(self.records)


class Copy:
    """What a copy loop is told, and has done: an adapter's loop asks going(), calls may_die() when the records of a transaction and
    its offsets are sent, learns how it ends by ends_well(), and then counts it by committed() or aborted()."""

    def __init__(self, call):
        self.call, self.args = call, call.args
        self.source, self.target, self.group = self.args["from"], self.args["to"], self.args["group"]
        self.session_ms, self.heartbeat_ms = self.args["session_ms"], self.args["session_ms"] // 10
        self.batch = self.args.get("batch") or 100
        self.result = {"records": 0, "commits": 0, "aborts": 0}

    def going(self):
        return not self.call.stop.is_set()

    def may_die(self):
        """Does not return once enough was copied."""
        if self.call.die and self.result["records"] >= self.args["die"]:
            self.call.die(self.result)

    def ends_well(self):
        """Whether the transaction now under way is to be committed."""
        every = self.args.get("abort_every") or 0
        return not every or (self.result["commits"] + self.result["aborts"] + 1) % every != 0

    def committed(self, records):
        self.result["records"] += records
        self.result["commits"] += 1
        self.call.progress(self.result["records"])

    def aborted(self, error=None):
        self.result["aborts"] += 1
        if error:
            print("a transaction was aborted:", repr(error), file=sys.stderr, flush=True)
