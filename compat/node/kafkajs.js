'use strict'
// KafkaJS as a client of the suite. It reads by groups only, so an assignment by hand is a group of one member that seeks.

const { randomUUID } = require('node:crypto')
const zlib = require('node:zlib')
const { promisify } = require('node:util')
const { EARLIEST, KafkaError, LATEST, decode, encode, kafkaName, lingered, produceChunks, streamChunks } = require('./lines.js')

module.exports = load => {
  const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = load('kafkajs')
  const { lz4Compress, lz4Decompress } = load('@platformatic/wasm-utils')
  const [zstdCompress, zstdDecompress] = [promisify(zlib.zstdCompress), promisify(zlib.zstdDecompress)]
  CompressionCodecs[CompressionTypes.Snappy] = load('kafkajs-snappy')
  CompressionCodecs[CompressionTypes.LZ4] = () =>
    ({ compress: async encoder => lz4Compress(encoder.buffer), decompress: async buffer => lz4Decompress(buffer) })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({ compress: encoder => zstdCompress(encoder.buffer), decompress: zstdDecompress })
  const CODECS = { gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }

  const retry = { initialRetryTime: 50, maxRetryTime: 300, retries: 3000 }
  const kafka = args => new Kafka({ clientId: 'ottla-compat', brokers: [args.bootstrap], logLevel: logLevel.ERROR, retry, requestTimeout: 100_000 })

  // errorName looks through what KafkaJS wraps around a broker's refusal.
  function errorName(error) {
    if (!error) return ''
    if (error.kafkaName) return error.kafkaName
    if (error.type) return kafkaName(error.type)
    const inner = [error.cause, error.originalError, ...(error.errors ?? []), ...(error.partitions ?? []).map(p => p.error)]
    return inner.map(errorName).find(name => name) ?? ''
  }

  async function withProducer({ args }, work) {
    const producer = kafka(args).producer({
      idempotent: args.idempotent ?? false, maxInFlightRequests: 5, createPartitioner: Partitioners.DefaultPartitioner,
          })
    await producer.connect()
    try {
      return await work(producer)
    } finally {
      await producer.disconnect()
    }
  }

  const toSend = r => {
    const headers = {} // repeated keys hold a list
    for (const { key, value } of r.headers ?? []) headers[key] = [...(headers[key] ?? []), decode(value)]
    return { partition: r.partition, key: decode(r.key), value: decode(r.value), headers, ...(r.timestamp ? { timestamp: String(r.timestamp) } : {}) }
  }

  const sender = (producer, args) => async records => {
    const acks = { 0: 0, 1: 1 }[args.acks] ?? -1
    const [answer] = await producer.send({ topic: args.topic, acks, compression: CODECS[args.codec], messages: records.map(toSend) }) ?? []
    return answer && { offset: Number(answer.baseOffset), timestamp: Number(answer.logAppendTime) }
  }

  const produce = call => withProducer(call, producer => produceChunks(call.args, sender(producer, call.args), errorName))
  const stream = call => withProducer(call, producer => streamChunks(call, sender(producer, call.args), errorName))

  const received = (partition, m) => ({
    partition, offset: Number(m.offset), timestamp: Number(m.timestamp), log_append: false, key: encode(m.key), value: encode(m.value),
    headers: Object.entries(m.headers ?? {}).flatMap(([key, values]) => [values].flat().map(value => ({ key, value: encode(value) }))),
  })

  // ends gives the first and the next offset of each partition.
  const ends = async (args, topic) => withAdmin({ args }, async admin =>
    new Map((await admin.fetchTopicOffsets(topic)).map(p => [p.partition, { low: Number(p.low), high: Number(p.high) }])))

  async function consume(call) {
    const { args } = call
    const known = await ends(args, args.topic)
    const position = new Map()
    for (const [p, offset] of Object.entries(args.from)) {
      const { low, high } = known.get(Number(p))
      position.set(Number(p), offset === LATEST ? high : offset === EARLIEST ? low : offset)
    }
    const records = []
    const done = value => {
      if (args.until_value) return value === encode(Buffer.from(args.until_value))
      return args.count ? records.length >= args.count : [...position].every(([p, at]) => at >= known.get(p).high)
    }
    if (!args.count && done()) return records
    const consumer = kafka(args).consumer({
      groupId: `by-hand-${randomUUID()}`, maxWaitTimeInMs: args.max_wait_ms || 100, readUncommitted: !args.read_committed,
      sessionTimeout: args.max_wait_ms ? 1_000_000 : 30_000, ...(args.max_fetch_bytes ? { maxBytesPerPartition: args.max_fetch_bytes } : {}),
    })
    await consumer.connect()
    await consumer.subscribe({ topics: [args.topic], fromBeginning: args.reset !== 'latest' })
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || reject(payload.error))
      consumer.on(consumer.events.GROUP_JOIN, () => { // for the first time, and again when the server was away
        for (const [partition, offset] of position) consumer.seek({ topic: args.topic, partition, offset: String(offset) })
      })
      // What holds no records for the reader is processed as well, and moves its position.
      consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) => {
        if (position.has(partition)) position.set(partition, Math.max(position.get(partition), Number(lastOffset) + 1))
        if (!args.count && !args.until_value && done()) resolve()
      })
      consumer.run({
        autoCommit: false,
        eachBatch: async ({ batch: { partition, messages } }) => {
          if (!position.has(partition)) return
          for (const m of messages) {
            if (args.count && records.length >= args.count) break
            records.push(received(partition, m))
            position.set(partition, Number(m.offset) + 1)
            call.progress(records.length)
            if ((args.count || args.until_value) && done(encode(m.value))) {
              consumer.stop() // before it fetches again, which may take as long as max_wait_ms
              return resolve()
            }
          }
        },
      }).catch(reject)
    }).finally(() => consumer.disconnect())
    return records
  }

  async function readInGroup(args, member) {
    const { topic, group: groupId, session_ms: sessionTimeout } = args
    const starts = await startsOf(args)
    const consumer = kafka(args).consumer({ groupId, sessionTimeout, heartbeatInterval: sessionTimeout / 10, maxWaitTimeInMs: 100, rebalanceTimeout: 60_000 })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    let owned = []
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      owned = payload.memberAssignment[topic] ?? []
      for (const partition of member.toPlace(owned)) consumer.seek({ topic, partition, offset: String(starts.get(partition)) })
    })
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || reject(payload.error))
      const watch = setInterval(() => member.room() > 0 || resolve(clearInterval(watch)), 20)
      consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: async ({ batch: { partition, messages }, resolveOffset, commitOffsetsIfNecessary, isStale }) => {
          if (isStale() || member.room() <= 0) return
          const read = messages.slice(0, member.room())
          member.take(read.map(m => received(partition, m)))
          await commitDue(member, topic, p => owned.includes(p), commitOffsetsIfNecessary)
          resolveOffset(read.at(-1).offset)
        },
      }).catch(reject)
    }).then(() => member.crash()).finally(() => consumer.disconnect())
  }

  // startsOf are the offsets at which a member that seeks begins.
  async function startsOf(args) {
    if (args.seek === 'beginning') return new Map([...await ends(args, args.topic)].map(([p, { low }]) => [p, low]))
    if (args.seek === 'offset') return new Map([...await ends(args, args.topic)].map(([p]) => [p, args.seek_at]))
    if (args.seek !== 'time') return new Map()
    return withAdmin({ args }, async admin => new Map((await admin.fetchTopicOffsetsByTimestamp(args.topic, args.seek_at)).map(p => [p.partition, p.offset])))
  }

  async function commitDue(member, topic, owned, commit) {
    const due = member.due(owned)
    if (due.length === 0) return
    try {
      await commit({ topics: [{ topic, partitions: due.map(([partition, offset]) => ({ partition, offset: String(offset) })) }] })
      member.settled(due)
    } catch (error) { // the consumer joins again, and goes on where it has committed
      member.notSettled(error)
      throw error
    }
  }

  // withTransactions gives work a producer that is the only one of its transactional id.
  async function withTransactions({ args }, work) {
    const producer = kafka(args).producer({
      transactionalId: args.transactional_id, idempotent: true, maxInFlightRequests: 1, createPartitioner: Partitioners.DefaultPartitioner,
      ...(args.timeout_ms ? { transactionTimeout: args.timeout_ms } : {}),
    })
    await producer.connect()
    try {
      return await work(producer)
    } finally {
      await producer.disconnect()
    }
  }

  const transact = call => withTransactions(call, async producer => {
    const answers = []
    for (const what of call.args.transactions) {
      const transaction = await producer.transaction()
      answers.push(await produceChunks({ records: what.records }, sender(transaction, call.args), errorName))
      await lingered(call, what, answers.length)
      await (what.end === 'abort' ? transaction.abort() : transaction.commit())
    }
    return answers
  })

  const copy = call => withTransactions(call, async producer => {
    const { from, to, group: groupId, session_ms: sessionTimeout, batch: most = 100, abort_every: every = 0 } = call.args
    const done = { records: 0, commits: 0, aborts: 0 }
    const consumer = kafka(call.args).consumer({ groupId, sessionTimeout, heartbeatInterval: sessionTimeout / 10, maxWaitTimeInMs: 100, rebalanceTimeout: 60_000 })
    await consumer.connect()
    await consumer.subscribe({ topics: [from], fromBeginning: true })
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || reject(payload.error))
      call.onStop = resolve
      consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: async ({ batch: { partition, messages }, resolveOffset, heartbeat, isRunning, isStale }) => {
          for (let i = 0; i < messages.length && isRunning() && !isStale() && !call.stopped; i += most) {
            const read = messages.slice(i, i + most)
            const next = String(Number(read.at(-1).offset) + 1)
            const transaction = await producer.transaction()
            try {
              await transaction.send({ topic: to, messages: read.map(({ key, value, headers }) => ({ partition, key, value, headers })) })
              await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic: from, partitions: [{ partition, offset: next }] }] })
            } catch (error) {
              await transaction.abort()
              done.aborts++
              throw error
            }
            if (call.die && done.records >= call.args.die) call.die(done)
            if (every && (done.commits + done.aborts + 1) % every === 0) {
              await transaction.abort()
              done.aborts++
              i -= most // once more
              continue
            }
            await transaction.commit()
            done.commits++
            done.records += read.length
            call.progress(done.records)
            resolveOffset(read.at(-1).offset)
            await heartbeat()
          }
        },
      }).catch(reject)
      if (call.stopped) resolve()
    }).finally(() => consumer.disconnect())
    return done
  })

  async function withAdmin({ args }, work, settings = {}) {
    const admin = kafka(args).admin(settings)
    await admin.connect()
    try {
      return await work(admin)
    } finally {
      await admin.disconnect()
    }
  }

  const createTopic = call => withAdmin(call, async admin => {
    const { topic, partitions, configs } = call.args
    const configEntries = Object.entries(configs ?? {}).map(([name, value]) => ({ name, value }))
    const created = await admin.createTopics({ waitForLeaders: false, timeout: 100_000, topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }] })
    if (!created) throw new KafkaError('TOPIC_ALREADY_EXISTS', 'createTopics returned false')
    return {}
  })

  // It asks again and again for a topic that is unknown, in case that it comes up.
  const deleteTopic = call => withAdmin(call, async admin => {
    await admin.deleteTopics({ topics: [call.args.topic], timeout: 100_000 })
    return {}
  }, { retry: { ...retry, retries: 2 } })

  const createPartitions = call => withAdmin(call, async admin => {
    await admin.createPartitions({ timeout: 100_000, topicPartitions: [{ topic: call.args.topic, count: call.args.total }] })
    return {}
  })

  const partitions = call => withAdmin(call, async admin => {
    const { topics: [{ partitions }] } = await admin.fetchTopicMetadata({ topics: [call.args.topic] })
    for (const p of partitions) {
      if (p.leader < 0) throw new Error(`partition ${p.partitionId} has no leader`)
    }
    return partitions.length
  })

  const topics = call => withAdmin(call, async admin => (await admin.listTopics()).sort())

  const topicConfigs = call => withAdmin(call, async admin => {
    const { resources: [{ configEntries }] } = await admin.describeConfigs({
      includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: call.args.topic }],
    })
    return Object.fromEntries(configEntries.map(e => [e.configName, e.configValue]))
  })

  // It does not tell what the log begins with afterwards.
  const deleteRecords = call => withAdmin(call, async admin => {
    const { topic, partition, before } = call.args
    await admin.fetchTopicMetadata({ topics: [topic] })
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    return Number((await admin.fetchTopicOffsets(topic)).find(p => p.partition === partition).low)
  })

  const listOffset = call => withAdmin(call, async admin => {
    const { topic, partition, at } = call.args
    const { low, high } = (await admin.fetchTopicOffsets(topic)).find(p => p.partition === partition)
    if (at === LATEST || at === EARLIEST) return { offset: Number(at === LATEST ? high : low), timestamp: -1 }
    const { offset } = (await admin.fetchTopicOffsetsByTimestamp(topic, at)).find(p => p.partition === partition)
    return { offset: offset === high ? -1 : Number(offset), timestamp: -1 }
  })

  const commit = call => withAdmin(call, async admin => {
    const { group: groupId, topic, offsets } = call.args
    await admin.setOffsets({ groupId, topic, partitions: Object.entries(offsets).map(([p, offset]) => ({ partition: Number(p), offset: String(offset) })) })
    return {}
  })

  const committed = call => withAdmin(call, async admin => {
    const [found] = await admin.fetchOffsets({ groupId: call.args.group, topics: [call.args.topic] })
    return Object.fromEntries((found?.partitions ?? []).filter(p => p.offset >= 0).map(p => [p.partition, Number(p.offset)]))
  })

  return {
    errorName,
    readInGroup,
    operations: {
      produce, stream, consume, topics, partitions, commit, committed, transact, copy, create_topic: createTopic, delete_topic: deleteTopic,
      create_partitions: createPartitions, topic_configs: topicConfigs, delete_records: deleteRecords, list_offset: listOffset,
    },
  }
}
