//! The admin client, and what a consumer knows without reading.

use crate::{Answer, Call, Failure};
use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Map, Value};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(30);

fn admin(call: &Call) -> Result<AdminClient<DefaultClientContext>, Failure> {
    Ok(call.config().create()?)
}

/// The one result of a request about one topic.
fn one(results: Vec<Result<String, (String, RDKafkaErrorCode)>>) -> Answer {
    for result in results {
        result.map_err(|(_, code)| Failure::from(code))?;
    }
    Ok(json!({}))
}

pub fn create_topic(call: &Call) -> Answer {
    let mut topic = NewTopic::new(call.text("topic"), call.number("partitions") as i32, TopicReplication::Fixed(1));
    let none = Map::new();
    for (key, value) in call.args["configs"].as_object().unwrap_or(&none) {
        topic = topic.set(key, value.as_str().unwrap_or(""));
    }
    one(block_on(admin(call)?.create_topics(&[topic], &AdminOptions::new()))?)
}

pub fn delete_topic(call: &Call) -> Answer {
    one(block_on(admin(call)?.delete_topics(&[call.text("topic")], &AdminOptions::new()))?)
}

pub fn create_partitions(call: &Call) -> Answer {
    let more = NewPartitions::new(call.text("topic"), call.number("total") as usize);
    one(block_on(admin(call)?.create_partitions(&[more], &AdminOptions::new()))?)
}

pub fn topic_configs(call: &Call) -> Answer {
    let resource = ResourceSpecifier::Topic(call.text("topic"));
    let mut values = Map::new();
    for result in block_on(admin(call)?.describe_configs([&resource], &AdminOptions::new()))? {
        for entry in result.map_err(Failure::from)?.entries {
            values.insert(entry.name, entry.value.map_or(Value::Null, Value::String));
        }
    }
    Ok(Value::Object(values))
}

/// A consumer that reads nothing; its group matters where offsets are committed.
fn consumer(call: &Call) -> Result<BaseConsumer, Failure> {
    let mut config = call.config();
    if !call.text("group").is_empty() {
        config.set("group.id", call.text("group"));
    }
    Ok(config.set("enable.auto.commit", "false").create()?)
}

pub fn partitions(call: &Call) -> Answer {
    let metadata = consumer(call)?.fetch_metadata(Some(call.text("topic")), WAIT)?;
    let topic = &metadata.topics()[0];
    if let Some(code) = topic.error() {
        return Err(RDKafkaErrorCode::from(code).into());
    }
    for p in topic.partitions() {
        if p.leader() < 0 {
            return Err(format!("partition {} has no leader", p.id()).into());
        }
    }
    Ok(json!(topic.partitions().len()))
}

pub fn topics(call: &Call) -> Answer {
    let metadata = consumer(call)?.fetch_metadata(None, WAIT)?;
    let mut names: Vec<&str> = metadata.topics().iter().map(|t| t.name()).filter(|n| !n.starts_with("__")).collect();
    names.sort_unstable();
    Ok(json!(names))
}

/// The library tells no timestamps of offsets, and the end where there is none of that time.
pub fn list_offset(call: &Call) -> Answer {
    let (topic, partition, at) = (call.text("topic"), call.number("partition") as i32, call.number("at"));
    let consumer = consumer(call)?;
    let offset = match at {
        -1 => consumer.fetch_watermarks(topic, partition, WAIT)?.1,
        -2 => consumer.fetch_watermarks(topic, partition, WAIT)?.0,
        at => {
            let mut asked = TopicPartitionList::new();
            asked.add_partition_offset(topic, partition, Offset::Offset(at))?;
            let found = consumer.offsets_for_times(asked, WAIT)?;
            let elements = found.elements();
            elements[0].error()?;
            elements[0].offset().to_raw().unwrap_or(-1)
        }
    };
    Ok(json!({"offset": offset, "timestamp": -1}))
}

pub fn commit(call: &Call) -> Answer {
    let mut offsets = TopicPartitionList::new();
    for (partition, offset) in call.offsets("offsets") {
        offsets.add_partition_offset(call.text("topic"), partition, Offset::Offset(offset))?;
    }
    consumer(call)?.commit(&offsets, CommitMode::Sync)?;
    Ok(json!({}))
}

pub fn committed(call: &Call) -> Answer {
    let consumer = consumer(call)?;
    let metadata = consumer.fetch_metadata(Some(call.text("topic")), WAIT)?;
    let mut asked = TopicPartitionList::new();
    for p in metadata.topics()[0].partitions() {
        asked.add_partition(call.text("topic"), p.id());
    }
    let mut offsets = Map::new();
    for p in consumer.committed_offsets(asked, WAIT)?.elements() {
        p.error()?;
        if let Offset::Offset(offset) = p.offset() {
            offsets.insert(p.partition().to_string(), json!(offset));
        }
    }
    Ok(Value::Object(offsets))
}
