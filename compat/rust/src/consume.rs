//! The consumer, with partitions assigned by hand.

use crate::{record, Answer, Call};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;

/// Whether an error that a consumer tells goes away by itself.
pub fn passes(e: &KafkaError) -> bool {
    use RDKafkaErrorCode::*;
    matches!(
        e.rdkafka_error_code(),
        Some(
            BrokerTransportFailure | AllBrokersDown | NotLeaderForPartition | LeaderNotAvailable | NetworkException
                | RequestTimedOut | CoordinatorLoadInProgress | CoordinatorNotAvailable | NotCoordinator
        )
    )
}

pub fn consume(call: &Call) -> Answer {
    let mut config = call.config();
    let reset = match call.text("reset") {
        "" | "none" => "error",
        other => other,
    };
    config
        .set("group.id", "assigned-by-hand")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("check.crcs", "true")
        .set("auto.offset.reset", reset)
        .set("isolation.level", if call.yes("read_committed") { "read_committed" } else { "read_uncommitted" });
    if call.number("max_wait_ms") > 0 {
        config.set("fetch.wait.max.ms", call.number("max_wait_ms").min(300_000).to_string()).set("socket.timeout.ms", "300000");
    }
    if call.number("max_fetch_bytes") > 0 {
        config.set("max.partition.fetch.bytes", call.number("max_fetch_bytes").to_string());
    }
    let consumer: BaseConsumer = config.create()?;
    let mut open = HashSet::new();
    let mut partitions = TopicPartitionList::new();
    for (partition, from) in call.offsets("from") {
        let offset = match from {
            -1 => Offset::End,
            -2 => Offset::Beginning,
            offset => Offset::Offset(offset),
        };
        partitions.add_partition_offset(call.text("topic"), partition, offset)?;
        open.insert(partition);
    }
    consumer.assign(&partitions)?;
    let (count, until) = (call.number("count") as usize, call.text("until_value"));
    let mut records = Vec::new();
    loop {
        let more = if !until.is_empty() {
            true
        } else if count > 0 {
            records.len() < count
        } else {
            !open.is_empty()
        };
        if !more {
            return Ok(json!(records));
        }
        match consumer.poll(Duration::from_secs(1)) {
            None => {}
            Some(Ok(m)) => {
                records.push(record(&m));
                call.progress(records.len());
                if !until.is_empty() && m.payload() == Some(until.as_bytes()) {
                    return Ok(json!(records));
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            Some(Err(e)) if passes(&e) => {}
            Some(Err(e)) => return Err(e.into()),
        }
    }
}
