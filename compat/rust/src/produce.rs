//! The producer.

use crate::{decode, error_name, Answer, Call, Failure};
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use serde_json::{json, Value};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(300);

/// What came back, by the number of the record.
#[derive(Default)]
pub struct Acks {
    state: Mutex<(Vec<Value>, usize)>, // the acknowledgements, and how many came
    changed: Condvar,
}

pub struct Context {
    pub acks: Arc<Acks>,
}

impl ClientContext for Context {}

impl ProducerContext for Context {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let ack = match result {
            Ok(m) => json!({"partition": m.partition(), "offset": m.offset(), "timestamp": m.timestamp().to_millis().unwrap_or(-1)}),
            Err((e, m)) => {
                let name = e.rdkafka_error_code().map(error_name).unwrap_or_else(|| e.to_string());
                json!({"partition": m.partition(), "offset": -1, "timestamp": -1, "err": name})
            }
        };
        self.acks.set(number, ack);
    }
}

impl Acks {
    fn set(&self, number: usize, ack: Value) {
        let mut state = self.state.lock().unwrap();
        if state.0.len() <= number {
            state.0.resize(number + 1, Value::Null);
        }
        state.0[number] = ack;
        state.1 += 1;
        self.changed.notify_all();
    }

    /// Waits a little until all but so many of the records have come back, and tells how many have.
    pub fn wait(&self, sent: usize, but: usize) -> usize {
        let state = self.state.lock().unwrap();
        let enough = |s: &mut (Vec<Value>, usize)| s.1 + but < sent;
        let (state, _) = self.changed.wait_timeout_while(state, Duration::from_millis(200), enough).unwrap();
        state.1
    }

    pub fn all(&self) -> Vec<Value> {
        self.state.lock().unwrap().0.clone()
    }
}

fn connect(call: &Call, acks: &Arc<Acks>) -> Result<ThreadedProducer<Context>, Failure> {
    let mut config = call.config();
    let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_string() } else { text.to_string() };
    config
        .set("linger.ms", call.number("linger_ms").to_string())
        .set("acks", or(call.text("acks"), "all"))
        .set("compression.type", or(call.text("codec"), "none"))
        .set("enable.idempotence", call.yes("idempotent").to_string())
        .set("request.timeout.ms", "100000"); // what a busy machine is slow to answer would be sent again
    if call.number("batch_bytes") > 0 {
        config.set("batch.size", call.number("batch_bytes").to_string());
    }
    if call.number("max_request_bytes") > 0 {
        config.set("message.max.bytes", call.number("max_request_bytes").to_string());
    }
    Ok(config.create_with_context(Context { acks: acks.clone() })?)
}

/// Hands a record to the producer, which may have to make room first. What it refuses at once is an acknowledgement too.
pub fn send(producer: &ThreadedProducer<Context>, acks: &Acks, topic: &str, number: usize, r: &Value) {
    let (key, value) = (decode(&r["key"]), decode(&r["value"]));
    let partition = r["partition"].as_i64().unwrap_or(0) as i32;
    let mut record: BaseRecord<[u8], [u8], usize> = BaseRecord::with_opaque_to(topic, number).partition(partition);
    if let Some(key) = &key {
        record = record.key(key);
    }
    if let Some(value) = &value {
        record = record.payload(value);
    }
    if let Some(at) = r["timestamp"].as_i64().filter(|at| *at != 0) {
        record = record.timestamp(at);
    }
    if let Some(list) = r["headers"].as_array().filter(|list| !list.is_empty()) {
        let mut headers = OwnedHeaders::new();
        for h in list {
            let value = decode(&h["value"]);
            headers = headers.insert(Header { key: h["key"].as_str().unwrap_or(""), value: value.as_ref() });
        }
        record = record.headers(headers);
    }
    loop {
        match producer.send(record) {
            Ok(()) => return,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                record = back;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err((e, _)) => {
                let name = e.rdkafka_error_code().map(error_name).unwrap_or_else(|| e.to_string());
                return acks.set(number, json!({"partition": partition, "offset": -1, "timestamp": -1, "err": name}));
            }
        }
    }
}

pub fn produce(call: &Call) -> Answer {
    let acks = Arc::<Acks>::default();
    let producer = connect(call, &acks)?;
    let none = Vec::new();
    let records = call.args["records"].as_array().unwrap_or(&none);
    for (i, r) in records.iter().enumerate() {
        send(&producer, &acks, call.text("topic"), i, r);
        if call.yes("one_by_one") {
            producer.flush(LONG)?;
        }
    }
    producer.flush(LONG)?;
    while acks.wait(records.len(), 0) < records.len() {}
    let state = acks.state.lock().unwrap();
    Ok(json!(state.0))
}

pub fn stream(call: &Call) -> Answer {
    let acks = Arc::<Acks>::default();
    let producer = connect(call, &acks)?;
    let window = call.number("window").max(1) as usize;
    let (mut sent, mut told) = (0, 0);
    while !call.stopped() {
        let acked = acks.wait(sent, window - 1);
        if acked > told {
            told = acked;
            call.progress(told);
        }
        if sent - acked < window {
            let value = crate::encode(Some(format!("{}{}", call.text("prefix"), sent).as_bytes()));
            send(&producer, &acks, call.text("topic"), sent, &json!({"partition": 0, "key": null, "value": value}));
            sent += 1;
        }
    }
    producer.flush(LONG)?;
    while acks.wait(sent, 0) < sent {}
    let state = acks.state.lock().unwrap();
    Ok(json!(state.0))
}
