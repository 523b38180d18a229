//! The consumer as a member of a group; what it has read is committed as it goes on.

use crate::consume::passes;
use crate::{call_of, record, Answer, Call, Failure};
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// Where a member starts in partitions that it has not been given yet.
#[derive(Default)]
struct Seeks {
    to: Mutex<HashMap<i32, i64>>,
}

impl ClientContext for Seeks {}

impl ConsumerContext for Seeks {
    fn pre_rebalance(&self, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            for mut p in partitions.elements() {
                if let Some(offset) = self.to.lock().unwrap().remove(&p.partition()) {
                    p.set_offset(Offset::from_raw(offset)).expect("an offset");
                }
            }
        }
    }
}

/// The offsets that the options say, which the client asks for beforehand: it cannot while it is given partitions.
fn seeks(call: &Call) -> Result<HashMap<i32, i64>, Failure> {
    let wait = Duration::from_secs(30);
    let mut to = HashMap::new();
    if call.text("seek").is_empty() {
        return Ok(to);
    }
    let consumer: BaseConsumer = call.config().create()?;
    let metadata = consumer.fetch_metadata(Some(call.text("topic")), wait)?;
    let mut asked = TopicPartitionList::new();
    for p in metadata.topics()[0].partitions() {
        asked.add_partition_offset(call.text("topic"), p.id(), Offset::Offset(call.number("seek_at")))?;
    }
    let found = if call.text("seek") == "time" { consumer.offsets_for_times(asked, wait)? } else { asked };
    for p in found.elements() {
        let offset = if call.text("seek") == "beginning" { Offset::Beginning } else { p.offset() };
        to.insert(p.partition(), offset.to_raw().unwrap_or(-1));
    }
    Ok(to)
}

pub fn member(call: &Call) -> Answer {
    if call.yes("die") {
        return dying(call);
    }
    Ok(json!(read_in_group(call)?))
}

/// A command in a process of its own, which ends without a word once it has done enough.
pub fn dying(call: &Call) -> Answer {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child = Command::new(program)
        .arg("dying")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(stdin, "{}", call.args).map_err(|e| e.to_string())?;
    drop(stdin);
    let end = child.wait_with_output().map_err(|e| e.to_string())?;
    if end.status.code().is_some() {
        return Err(format!("what was to die ended by itself: {}", String::from_utf8_lossy(&end.stdout)).into());
    }
    serde_json::from_slice(&end.stdout).map_err(|e| e.to_string().into())
}

/// The process of a command that dies: it tells what it has done, and is gone.
pub fn die() -> ! {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the command");
    let call = call_of(serde_json::from_str(&line).expect("JSON"));
    let end = |done: &Value| {
        println!("{done}");
        std::process::abort()
    };
    if call.text("op") == "copy" {
        crate::transactions::copy(&call, Some(&end)).expect("a copy loop that dies copies first");
    } else {
        with_consumer(&call, |_, records| end(&json!(records))).expect("a member that dies reads first");
    }
    std::process::exit(1)
}

fn read_in_group(call: &Call) -> Result<Vec<Value>, Failure> {
    with_consumer(call, |_, _| ())
}

/// Reads until there is enough, calls last while the member still is one, and leaves the group.
fn with_consumer(call: &Call, last: impl Fn(&BaseConsumer<Seeks>, &[Value])) -> Result<Vec<Value>, Failure> {
    let mut config = call.config();
    config
        .set("group.id", call.text("group"))
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", call.number("session_ms").to_string())
        .set("heartbeat.interval.ms", (call.number("session_ms") / 10).to_string());
    let consumer: BaseConsumer<Seeks> = config.create_with_context(Seeks { to: Mutex::new(seeks(call)?) })?;
    consumer.subscribe(&[call.text("topic")])?;
    let count = call.number("count") as usize;
    let mut records: Vec<Value> = Vec::new();
    while if count > 0 { records.len() < count } else { !call.stopped() } {
        let before = records.len();
        let mut wait = Duration::from_millis(200);
        while records.len() < before + 100 && (count == 0 || records.len() < count) {
            match consumer.poll(wait) {
                None => break,
                Some(Ok(m)) => records.push(record(&m)),
                Some(Err(e)) if passes(&e) => {}
                Some(Err(e)) => return Err(e.into()),
            }
            wait = Duration::ZERO; // what is here already
        }
        if records.len() == before {
            continue;
        }
        if let Err(e) = commit(&consumer, call, &records, before) {
            eprintln!("a commit failed: {e}"); // the next makes it good, or the partitions are another's
        }
        call.progress(records.len());
    }
    last(&consumer, &records);
    Ok(records)
}

/// Commits what is due after a poll, before which so many records were read.
fn commit(consumer: &BaseConsumer<Seeks>, call: &Call, records: &[Value], before: usize) -> Result<(), KafkaError> {
    let most = call.number("commit");
    let due = match most {
        0 => &records[before..],
        most if most > 0 && before < most as usize && records.len() >= most as usize => &records[..most as usize], // once
        _ => return Ok(()),
    };
    let mut positions = HashMap::new();
    for r in due {
        positions.insert(r["partition"].as_i64().unwrap_or(0) as i32, r["offset"].as_i64().unwrap_or(0) + 1);
    }
    let mut list = TopicPartitionList::new();
    for (partition, position) in positions {
        list.add_partition_offset(call.text("topic"), partition, Offset::Offset(position))?;
    }
    consumer.commit(&list, CommitMode::Sync)
}
