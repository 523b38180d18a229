'use strict'
// What the Node.js clients of the suite share: the words of ../suite/client.go in JavaScript, and what a member of a group keeps
// in mind (the same as ../python/lines.py). It holds no client library: those are in kafkajs.js and platformatic.js.

const LATEST = -1
const EARLIEST = -2

const write = message => process.stdout.write(JSON.stringify(message) + '\n')
const encode = data => (data == null ? null : Buffer.from(data).toString('base64'))
const decode = text => (text == null ? null : Buffer.from(text, 'base64'))
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

// KafkaError is a refusal that the client tells otherwise than by an error, under Kafka's name.
class KafkaError extends Error {
  constructor(name, message) {
    super(message ?? name)
    this.kafkaName = name
  }
}

// Old names under those of today.
const KAFKA_NAMES = {
  MSG_SIZE_TOO_LARGE: 'MESSAGE_TOO_LARGE',
  INVALID_TOPIC: 'INVALID_TOPIC_EXCEPTION',
  UNKNOWN: 'UNKNOWN_SERVER_ERROR',
}
const kafkaName = name => KAFKA_NAMES[name] ?? name ?? ''

const ack = (partition, offset = -1, timestamp = -1, err = '') => ({ partition, offset, timestamp, err })

// chunks cuts records into what goes into one request: neither library gathers records by itself, so what was not given to it in
// one call is a batch of its own. A request holds one partition: both repeat all of a request of which one partition was refused.
function * chunks(args) {
  const limit = args.one_by_one ? 0 : args.batch_bytes || 65536
  let chunk = []
  let bytes = 0
  for (const r of args.records) {
    const size = 100 + ((r.key ?? '').length + (r.value ?? '').length) * 3 / 4
    if (chunk.length > 0 && (bytes + size > limit || chunk[0].partition !== r.partition)) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(r)
    bytes += size
  }
  if (chunk.length > 0) yield chunk
}

// produceChunks sends records by send, which returns {offset, timestamp} of a chunk's first record where it is known, and gives the
// acknowledgements in order. What send throws is the error of every record of the chunk, by its name.
async function produceChunks(args, send, errorName) {
  const acks = []
  for (const chunk of chunks(args)) {
    try {
      const { offset = -1, timestamp = -1 } = await send(chunk) ?? {}
      acks.push(...chunk.map(({ partition }, i) => ack(partition, offset < 0 ? -1 : offset + i, timestamp)))
    } catch (error) {
      console.error('not produced:', error)
      acks.push(...chunk.map(({ partition }) => ack(partition, -1, -1, errorName(error) || String(error))))
    }
  }
  return acks
}

// streamChunks produces until told to stop: up to a window of records at once, and each time waits for them, since a library that
// sends on while it repeats an earlier request would change their order.
async function streamChunks(call, send, errorName) {
  const { prefix, window } = call.args
  const acks = []
  while (!call.stopped) {
    const records = Array.from({ length: Math.max(1, window >> 2) }, (_, i) =>
      ({ partition: 0, key: null, value: encode(Buffer.from(prefix + (acks.length + i))) }))
    acks.push(...await produceChunks({ records }, send, errorName))
    call.progress(acks.length)
  }
  return acks
}

// lingered tells that a transaction is open that is to stay so, and waits until it may end.
async function lingered(call, { end }, begun) {
  if (end !== 'linger') return
  call.progress(begun)
  await new Promise(resolve => {
    call.onStop = resolve
    if (call.stopped) resolve()
  })
}

// Member is what a member of a group has read, when it has read enough, and what it is to commit.
class Member {
  #pending = new Map()
  #placed = new Set()

  constructor(args, { stopped, progress, die }) {
    this.args = args
    this.records = []
    this.stopped = stopped
    this.progress = progress
    this.die = die
  }

  // room is how many records may be read now; 0 ends the reading.
  room() {
    if (this.args.count) return this.args.count - this.records.length
    return this.stopped() ? 0 : Infinity
  }

  take(records) {
    const limit = this.args.commit ?? 0
    const before = this.records.length
    this.records.push(...records)
    if (limit > 0) {
      if (before < limit && this.records.length >= limit) this.#want(this.records.slice(0, limit))
    } else if (limit === 0) {
      this.#want(records)
    }
    if (records.length > 0) this.progress(this.records.length)
  }

  #want(records) {
    for (const r of records) this.#pending.set(r.partition, r.offset + 1)
  }

  // due are the positions to commit now, [partition, offset], of partitions that are the member's own.
  due(owned) {
    for (const p of this.#pending.keys()) {
      if (!owned(p)) this.#pending.delete(p)
    }
    return [...this.#pending]
  }

  settled(due) {
    for (const [p, offset] of due) {
      if (this.#pending.get(p) === offset) this.#pending.delete(p)
    }
  }

  notSettled(error) {
    console.error('a commit failed:', error)
  }

  // toPlace are the partitions that the member must move to another position, since it got them for the first time.
  toPlace(owned) {
    const fresh = owned.filter(p => !this.#placed.has(p))
    fresh.forEach(p => this.#placed.add(p))
    return this.args.seek ? fresh : []
  }

  // crash is the end of a member that is to die; it does not return then.
  crash() {
    this.die?.(this.records)
  }
}

module.exports = { EARLIEST, KafkaError, LATEST, Member, decode, encode, kafkaName, lingered, produceChunks, sleep, streamChunks, write }
