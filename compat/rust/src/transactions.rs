//! The producer in transactions, by itself, and with a consumer whose offsets go with them.

use crate::consume::passes;
use crate::produce::{send, Acks, Context};
use crate::{encode, Answer, Call, Failure};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::producer::{Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn connect(call: &Call, acks: &Arc<Acks>) -> Result<ThreadedProducer<Context>, Failure> {
    let mut config = call.config();
    config.set("transactional.id", call.text("transactional_id"));
    if call.number("timeout_ms") > 0 {
        config.set("transaction.timeout.ms", call.number("timeout_ms").to_string());
    }
    let producer: ThreadedProducer<Context> = config.create_with_context(Context { acks: acks.clone() })?;
    producer.init_transactions(LONG)?;
    Ok(producer)
}

pub fn transact(call: &Call) -> Answer {
    let acks = Arc::<Acks>::default();
    let producer = connect(call, &acks)?;
    let none = Vec::new();
    let mut sent = 0;
    let mut ends = Vec::new();
    for transaction in call.args["transactions"].as_array().unwrap_or(&none) {
        producer.begin_transaction()?;
        for r in transaction["records"].as_array().unwrap_or(&none) {
            send(&producer, &acks, call.text("topic"), sent, r);
            sent += 1;
        }
        while acks.wait(sent, 0) < sent {}
        ends.push(sent);
        match transaction["end"].as_str() {
            Some("abort") => producer.abort_transaction(LONG)?,
            Some("linger") => {
                call.progress(ends.len());
                while !call.stopped() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                producer.commit_transaction(LONG)?
            }
            _ => producer.commit_transaction(LONG)?,
        }
    }
    let all = acks.all();
    let mut begin = 0;
    let mut answers = Vec::new();
    for end in ends {
        answers.push(json!(&all[begin..end]));
        begin = end;
    }
    Ok(json!(answers))
}

/// What a copy loop has done.
#[derive(Default)]
struct Copied {
    records: usize,
    commits: usize,
    aborts: usize,
}

impl Copied {
    fn json(&self) -> Value {
        json!({"records": self.records, "commits": self.commits, "aborts": self.aborts})
    }
}

/// A copy loop. One that is to die runs in a process of its own, which calls die with what it has done.
pub fn copy(call: &Call, die: Option<&dyn Fn(&Value)>) -> Answer {
    let acks = Arc::<Acks>::default();
    let producer = connect(call, &acks)?;
    let mut config = call.config();
    config
        .set("group.id", call.text("group"))
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("isolation.level", "read_committed")
        .set("session.timeout.ms", call.number("session_ms").to_string())
        .set("heartbeat.interval.ms", (call.number("session_ms") / 10).to_string());
    let consumer: BaseConsumer = config.create()?;
    consumer.subscribe(&[call.text("from")])?;
    let batch = if call.number("batch") > 0 { call.number("batch") as usize } else { 100 };
    let every = call.number("abort_every") as usize;
    let (mut done, mut sent) = (Copied::default(), 0);
    while !call.stopped() {
        let read = poll(&consumer, batch)?;
        if read.is_empty() {
            continue;
        }
        producer.begin_transaction()?;
        let mut positions = HashMap::new();
        for m in &read {
            let r = json!({"partition": m.partition(), "key": encode(m.key()), "value": encode(m.payload())});
            send(&producer, &acks, call.text("to"), sent, &r);
            sent += 1;
            positions.insert(m.partition(), m.offset() + 1);
        }
        let mut list = TopicPartitionList::new();
        for (partition, position) in positions {
            list.add_partition_offset(call.text("from"), partition, Offset::Offset(position))?;
        }
        let member = consumer.group_metadata().ok_or_else(|| "no member of the group any more".to_string())?;
        let mut ended = producer.send_offsets_to_transaction(&list, &member, LONG);
        if let (Some(die), true) = (die, done.records >= call.number("die") as usize) {
            while acks.wait(sent, 0) < sent {}
            die(&done.json());
        }
        let well = every == 0 || (done.commits + done.aborts + 1) % every != 0;
        if ended.is_ok() && well {
            ended = producer.commit_transaction(LONG);
            if ended.is_ok() {
                done.commits += 1;
                done.records += read.len();
                call.progress(done.records);
                continue;
            }
        }
        match ended {
            Err(KafkaError::Transaction(e)) if !e.txn_requires_abort() => return Err(KafkaError::Transaction(e).into()),
            Err(e) => eprintln!("a transaction is aborted: {e}"),
            Ok(()) => {}
        }
        producer.abort_transaction(LONG)?;
        done.aborts += 1;
        rewind(&consumer)?;
    }
    Ok(done.json())
}

/// Reads what is there, up to so many records.
fn poll(consumer: &BaseConsumer, most: usize) -> Result<Vec<BorrowedMessage<'_>>, Failure> {
    let mut read = Vec::new();
    let mut wait = Duration::from_millis(200);
    while read.len() < most {
        match consumer.poll(wait) {
            None => break,
            Some(Ok(m)) => read.push(m),
            Some(Err(e)) if passes(&e) => {}
            Some(Err(e)) => return Err(e.into()),
        }
        wait = Duration::ZERO; // what is here already
    }
    Ok(read)
}

/// Goes back to where the last transaction that was committed has ended.
fn rewind(consumer: &BaseConsumer) -> Result<(), Failure> {
    for p in consumer.committed(LONG)?.elements() {
        let to = if p.offset() == Offset::Invalid { Offset::Beginning } else { p.offset() };
        consumer.seek(p.topic(), p.partition(), to, LONG)?;
    }
    Ok(())
}
