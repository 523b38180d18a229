'use strict'
// The Node.js clients of the compatibility suite, driven by lines of JSON: driver.js MODULES kafkajs, driver.js MODULES platformatic,
// where MODULES is the folder with the libraries.
//
// The protocol is that of ../java/Driver.java: one request a line on standard input, run side by side, answered by lines
// {"id", "progress"} and one {"id", "ok"} or {"id", "error", "message"} on standard output.
//
// An adapter exports, given a function that loads a library, operations (async functions of a call by the name of the operation),
// readInGroup(args, member), and errorName(error), which is Kafka's name of an error, or nothing.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const { createRequire } = require('node:module')
const path = require('node:path')
const readline = require('node:readline')
const { Member, write } = require('./lines.js')

const [modules, client, role] = process.argv.slice(2)
const adapter = require(`./${client}.js`)(createRequire(path.join(modules, 'index.js')))
const calls = new Map()

async function operate(call) {
  if (call.args.op !== 'member') return adapter.operations[call.args.op](call)
  const m = new Member(call.args, { stopped: () => call.stopped, progress: call.progress, die: call.die })
  await adapter.readInGroup(call.args, m)
  return m.records
}

// dying is an operation in a process of its own, which kills itself when it has done enough.
function dying(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...process.argv.slice(1, 4), 'dying'])
    let [out, err] = ['', '']
    child.stdout.on('data', data => { out += data })
    child.stderr.on('data', data => { err += data })
    child.on('close', (code, signal) => {
      if (signal === 'SIGKILL') resolve(JSON.parse(out))
      else reject(new Error(`what was to die ended with ${code}: ${err.slice(-500)}`))
    })
    child.stdin.end(JSON.stringify(args) + '\n')
  })
}

async function dyingMain() {
  const args = JSON.parse(fs.readFileSync(0, 'utf8'))
  const die = result => {
    fs.writeSync(1, JSON.stringify(result))
    process.kill(process.pid, 'SIGKILL')
  }
  const result = await operate({ args, stopped: false, progress: () => {}, die })
  throw new Error(`still alive after ${JSON.stringify(result).slice(0, 200)}`)
}

async function run(call) {
  const { id } = call.args
  try {
    write({ id, ok: await (call.args.die ? dying(call.args) : operate(call)) })
  } catch (error) { // whatever it is, the other side must be told
    write({ id, error: adapter.errorName(error), message: error.stack ?? String(error) })
  } finally {
    calls.delete(id)
  }
}

function main() {
  const lines = readline.createInterface({ input: process.stdin })
  lines.on('line', line => {
    const args = JSON.parse(line)
    if (args.op === 'stop') {
      const call = calls.get(args.target)
      if (call) {
        call.stopped = true
        call.onStop?.()
      }
      return
    }
    const call = { args, stopped: false, progress: progress => write({ id: args.id, progress }) }
    calls.set(args.id, call)
    run(call)
  })
  lines.on('close', () => process.exit())
}

// A library may leave a rejection to nobody while the server is away: that is no reason to end the other calls.
process.on('unhandledRejection', error => console.error('nobody waited for:', error))
if (role === 'dying') dyingMain()
else main()
