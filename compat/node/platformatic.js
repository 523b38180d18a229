'use strict'
// @platformatic/kafka as a client of the suite. It reads by groups only, so an assignment by hand is a group of one member whose
// stream begins at given offsets.

const { randomUUID } = require('node:crypto')
const { EARLIEST, LATEST, decode, encode, kafkaName, lingered, produceChunks, sleep, streamChunks } = require('./lines.js')

module.exports = load => {
  const { Admin, ConfigResourceTypes, Consumer, FetchIsolationLevels, Producer } = load('@platformatic/kafka')

  const settings = (args, more = {}) =>
    ({ clientId: 'ottla-compat', bootstrapBrokers: [args.bootstrap], retries: 3000, retryDelay: 100, metadataMaxAge: 1000, timeout: 100_000, ...more })

  // errorName looks through what the library wraps around a broker's refusal; the reasons that single records were refused for have
  // no name but UNKNOWN_SERVER_ERROR.
  function errorName(error) {
    if (error?.apiId) return kafkaName(error.apiId)
    if (/^Unknown topic /.test(error?.message)) return 'UNKNOWN_TOPIC_OR_PARTITION'
    const names = [error?.cause, ...(error?.errors ?? [])].filter(e => e).map(errorName)
    return names.find(name => name && name !== 'UNKNOWN_SERVER_ERROR') ?? names[0] ?? ''
  }

  async function withProducer({ args }, work) {
    const producer = new Producer(settings(args, { idempotent: args.idempotent ?? false, autocreateTopics: true }))
    try {
      return await work(producer)
    } finally {
      await producer.close()
    }
  }

  const sender = (producer, args) => async records => {
    const messages = records.map(r => ({
      topic: args.topic, partition: r.partition, key: decode(r.key), value: decode(r.value),
      headers: new Map((r.headers ?? []).map(h => [Buffer.from(h.key), decode(h.value)])), // keys that repeat are different buffers
      ...(r.timestamp ? { timestamp: BigInt(r.timestamp) } : {}),
    }))
    const acks = args.idempotent ? undefined : { 0: 0, 1: 1 }[args.acks] ?? -1
    const { offsets } = await producer.send({ messages, ...(acks === undefined ? {} : { acks }), compression: args.codec || 'none' })
    return offsets?.[0] && { offset: Number(offsets[0].offset) }
  }

  const produce = call => withProducer(call, producer => produceChunks(call.args, sender(producer, call.args), errorName))
  const stream = call => withProducer(call, producer => streamChunks(call, sender(producer, call.args), errorName))

  const received = m => ({
    partition: m.partition, offset: Number(m.offset), timestamp: Number(m.timestamp), log_append: false, key: encode(m.key), value: encode(m.value),
    headers: [...m.headers].map(([key, value]) => ({ key: key.toString(), value: encode(value) })),
  })

  const ends = async (args, topic) => withAdmin({ args }, async admin => {
    const count = await countPartitions(admin, topic)
    const [low, high] = await Promise.all([EARLIEST, LATEST].map(at => offsetsAt(admin, topic, count, at)))
    return new Map(low.map(({ offset }, p) => [p, { low: Number(offset), high: Number(high[p].offset) }]))
  })

  async function offsetsAt(admin, topic, count, at) {
    const partitions = Array.from({ length: count }, (_, partitionIndex) => ({ partitionIndex, timestamp: BigInt(at) }))
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] })
    return found.partitions.sort((a, b) => a.partitionIndex - b.partitionIndex)
  }

  // follow reads a stream until over says that it is enough, which is asked between the fetches; each hands over the messages, and
  // says whether it can take more.
  async function follow(messages, over, each) {
    let watch
    await new Promise((resolve, reject) => {
      watch = setInterval(() => over() && resolve(), 20)
      let more = true
      messages.on('data', m => {
        more &&= each(m)
        if (!more) resolve()
      })
      messages.on('error', reject)
      messages.on('close', () => reject(new Error('the stream has ended')))
    }).finally(() => clearInterval(watch))
  }

  async function consume(call) {
    const { args } = call
    const known = await ends(args, args.topic)
    const wanted = new Map(Object.entries(args.from).map(([p, offset]) => {
      const { low, high } = known.get(Number(p))
      return [Number(p), offset === LATEST ? high : offset === EARLIEST ? low : offset]
    }))
    const records = []
    if (!args.count && !args.until_value && [...wanted].every(([p, at]) => at >= known.get(p).high)) return records
    const consumer = new Consumer(settings(args, {
      groupId: `by-hand-${randomUUID()}`, maxWaitTime: args.max_wait_ms || 100, autocommit: false,
      timeout: (args.max_wait_ms || 0) + 100_000, sessionTimeout: 30_000,
      isolationLevel: args.read_committed ? FetchIsolationLevels.READ_COMMITTED : FetchIsolationLevels.READ_UNCOMMITTED,
      ...(args.max_fetch_bytes ? { maxBytesPerPartition: args.max_fetch_bytes } : {}),
    }))
    try {
      const messages = await consumer.consume({
        topics: [args.topic], mode: 'manual', offsets: [...wanted].map(([partition, offset]) => ({ topic: args.topic, partition, offset: BigInt(offset) })),
      })
      const until = args.until_value && encode(Buffer.from(args.until_value))
      const at = p => Number(messages.offsetsToFetch.get(`${args.topic}:${p}`) ?? wanted.get(p))
      const atTheEnd = () => messages.readableLength === 0 && [...wanted.keys()].every(p => at(p) >= known.get(p).high)
      await follow(messages, () => !until && !args.count && atTheEnd(), m => {
        if (!wanted.has(m.partition)) return true
        records.push(received(m))
        call.progress(records.length)
        return until ? records.at(-1).value !== until : !args.count || records.length < args.count
      })
    } finally {
      await consumer.close(true)
    }
    return records
  }

  async function readInGroup(args, member) {
    const { topic, group: groupId, session_ms: sessionTimeout } = args
    const offsets = [...await startsOf(args)].map(([partition, offset]) => ({ topic, partition, offset: BigInt(offset) }))
    const consumer = new Consumer(settings(args, {
      groupId, sessionTimeout, heartbeatInterval: sessionTimeout / 10, rebalanceTimeout: 60_000, maxWaitTime: 100, autocommit: false,
      ...(args.protocol === 'consumer' ? { groupProtocol: 'consumer' } : {}),
    }))
    try {
      const messages = await consumer.consume({ topics: [topic], ...(offsets.length > 0 ? { mode: 'manual', offsets } : { mode: 'committed', fallbackMode: 'earliest' }) })
      const owned = p => consumer.assignments?.some(a => a.topic === topic && a.partitions.includes(p)) ?? false
      let committing
      const commitAll = async () => {
        await null
        while (!consumer.closed && member.due(owned).length > 0) {
          if (!await commitDue(consumer, topic, member, owned)) await sleep(20)
        }
        committing = undefined
      }
      await follow(messages, () => member.room() <= 0, m => {
        member.take([received(m)])
        committing ??= commitAll()
        return member.room() > 0
      })
      await committing
      member.crash()
    } finally {
      await consumer.close(true)
    }
  }

  // startsOf are the offsets at which a member that seeks begins.
  async function startsOf(args) {
    const known = args.seek ? await ends(args, args.topic) : new Map()
    if (args.seek === 'beginning') return new Map([...known].map(([p, { low }]) => [p, low]))
    if (args.seek === 'offset') return new Map([...known].map(([p]) => [p, args.seek_at]))
    if (args.seek !== 'time') return known
    return withAdmin({ args }, async admin => new Map((await offsetsAt(admin, args.topic, known.size, args.seek_at)).map(({ offset }, p) => [p, offset])))
  }

  // commitDue commits what is due and says whether that went well.
  async function commitDue(consumer, topic, member, owned) {
    const due = member.due(owned)
    try {
      await consumer.commit({ offsets: due.map(([partition, offset]) => ({ topic, partition, offset: BigInt(offset), leaderEpoch: -1 })) })
      member.settled(due)
      return true
    } catch (error) {
      member.notSettled(error)
      return false
    }
  }

  async function transact(call) {
    const { transactional_id: transactionalId, timeout_ms: timeout, transactions } = call.args
    const producer = new Producer(settings(call.args, { idempotent: true, transactionalId, ...(timeout ? { timeout } : {}) }))
    const answers = []
    try {
      for (const what of transactions) {
        const transaction = await producer.beginTransaction()
        answers.push(await produceChunks({ records: what.records }, sender(transaction, { ...call.args, idempotent: true }), errorName))
        await lingered(call, what, answers.length)
        await (what.end === 'abort' ? transaction.abort() : transaction.commit())
      }
    } finally {
      await producer.close()
    }
    return answers
  }

  async function withAdmin({ args }, work) {
    const admin = new Admin(settings(args, { retries: 5 }))
    try {
      return await work(admin)
    } finally {
      await admin.close()
    }
  }

  async function countPartitions(admin, topic) {
    const { partitions } = (await admin.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic)
    partitions.forEach((p, i) => {
      if (p.leader < 0) throw new Error(`partition ${i} has no leader`)
    })
    return partitions.length
  }

  const createTopic = call => withAdmin(call, async admin => {
    const { topic, partitions, configs } = call.args
    await admin.createTopics({ topics: [topic], partitions, replicas: 1, configs: Object.entries(configs ?? {}).map(([name, value]) => ({ name, value })) })
    return {}
  })

  const deleteTopic = call => withAdmin(call, async admin => {
    await admin.deleteTopics({ topics: [call.args.topic] })
    return {}
  })

  const createPartitions = call => withAdmin(call, async admin => {
    await admin.createPartitions({ topics: [{ name: call.args.topic, count: call.args.total, assignments: null }] })
    return {}
  })

  const partitions = call => withAdmin(call, admin => countPartitions(admin, call.args.topic))
  const topics = call => withAdmin(call, async admin => (await admin.listTopics()).sort())

  const topicConfigs = call => withAdmin(call, async admin => {
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: call.args.topic, configurationKeys: null }]
    const [{ configs }] = await admin.describeConfigs({ resources })
    return Object.fromEntries(configs.map(c => [c.name, c.value]))
  })

  const deleteRecords = call => withAdmin(call, async admin => {
    const { topic, partition, before } = call.args
    const [found] = await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition, offset: BigInt(before) }] }] })
    return Number(found.partitions[0].lowWatermark)
  })

  const listOffset = call => withAdmin(call, async admin => {
    const { topic, partition, at } = call.args
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex: partition, timestamp: BigInt(at) }] }] })
    return { offset: Number(found.partitions[0].offset), timestamp: Number(found.partitions[0].timestamp) }
  })

  const commit = call => withAdmin(call, async admin => {
    const { group: groupId, topic, offsets } = call.args
    const partitionOffsets = Object.entries(offsets).map(([p, offset]) => ({ partition: Number(p), offset: BigInt(offset) }))
    await admin.alterConsumerGroupOffsets({ groupId, topics: [{ name: topic, partitionOffsets }] })
    return {}
  })

  const committed = call => withAdmin(call, async admin => {
    const [{ topics }] = await admin.listConsumerGroupOffsets({ groups: [call.args.group] })
    const found = topics.find(t => t.name === call.args.topic)?.partitions ?? []
    return Object.fromEntries(found.filter(p => p.committedOffset >= 0n).map(p => [p.partitionIndex, Number(p.committedOffset)]))
  })

  return {
    errorName,
    readInGroup,
    operations: {
      produce, stream, consume, transact, topics, partitions, commit, committed, create_topic: createTopic, delete_topic: deleteTopic,
      create_partitions: createPartitions, topic_configs: topicConfigs, delete_records: deleteRecords, list_offset: listOffset,
    },
  }
}
