//! rdkafka as a client of the compatibility suite: commands are lines of JSON on standard input, each of which runs in a thread of
//! its own and is answered by lines of JSON on standard output. The protocol is that of ../java/Driver.java.
//!
//! It holds no scenario. This file is the conversation; what the commands do is in the other ones.

mod admin;
mod consume;
mod member;
mod produce;
mod transactions;

use base64::{engine::general_purpose::STANDARD, Engine};
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message, Timestamp};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What a command may use while it runs.
pub struct Call {
    id: i64,
    pub args: Value,
    stopped: Arc<AtomicBool>,
}

impl Call {
    pub fn text(&self, name: &str) -> &str {
        self.args[name].as_str().unwrap_or("")
    }

    pub fn number(&self, name: &str) -> i64 {
        self.args[name].as_i64().unwrap_or(0)
    }

    pub fn yes(&self, name: &str) -> bool {
        self.args[name].as_bool().unwrap_or(false)
    }

    /// An object whose keys are partitions and whose values are offsets.
    pub fn offsets(&self, name: &str) -> Vec<(i32, i64)> {
        let empty = serde_json::Map::new();
        let map = self.args[name].as_object().unwrap_or(&empty);
        map.iter().map(|(p, o)| (p.parse().unwrap_or(-1), o.as_i64().unwrap_or(0))).collect()
    }

    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub fn progress(&self, n: usize) {
        if self.id > 0 {
            say(json!({"id": self.id, "progress": n}));
        }
    }

    pub fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.text("bootstrap")).set("reconnect.backoff.max.ms", "200").set("log_level", "2");
        config
    }
}

/// How a command fails: with Kafka's name of the error, if it has one.
#[derive(Debug)]
pub struct Failure {
    pub name: String,
    pub message: String,
}

impl From<KafkaError> for Failure {
    fn from(e: KafkaError) -> Failure {
        let name = e.rdkafka_error_code().map(error_name).unwrap_or_default();
        Failure { name, message: e.to_string() }
    }
}

impl From<RDKafkaErrorCode> for Failure {
    fn from(code: RDKafkaErrorCode) -> Failure {
        Failure { name: error_name(code), message: code.to_string() }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure { name: String::new(), message }
    }
}

pub type Answer = Result<Value, Failure>;

/// Kafka's name of an error; of what librdkafka refuses by itself, the name that a broker gives to the same refusal.
pub fn error_name(code: RDKafkaErrorCode) -> String {
    match code {
        RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownPartition | RDKafkaErrorCode::UnknownTopicOrPartition => {
            "UNKNOWN_TOPIC_OR_PARTITION".into()
        }
        RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange => "OFFSET_OUT_OF_RANGE".into(),
        RDKafkaErrorCode::MessageSizeTooLarge => "MESSAGE_TOO_LARGE".into(),
        RDKafkaErrorCode::Fenced => "PRODUCER_FENCED".into(),
        RDKafkaErrorCode::InvalidTopic => "INVALID_TOPIC_EXCEPTION".into(),
        // The rest of the names are Kafka's, in another spelling: TopicAlreadyExists.
        code => {
            let mut name = String::new();
            for (i, c) in format!("{code:?}").chars().enumerate() {
                if c.is_uppercase() && i > 0 {
                    name.push('_');
                }
                name.push(c.to_ascii_uppercase());
            }
            name
        }
    }
}

pub fn encode(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |b| Value::String(STANDARD.encode(b)))
}

pub fn decode(value: &Value) -> Option<Vec<u8>> {
    value.as_str().map(|text| STANDARD.decode(text).expect("bytes travel as base64"))
}

pub fn record(m: &BorrowedMessage) -> Value {
    let (timestamp, log_append) = match m.timestamp() {
        Timestamp::NotAvailable => (-1, false),
        Timestamp::CreateTime(at) => (at, false),
        Timestamp::LogAppendTime(at) => (at, true),
    };
    let mut headers = Vec::new();
    for h in m.headers().iter().flat_map(|all| all.iter()) {
        headers.push(json!({"key": h.key, "value": encode(h.value)}));
    }
    json!({
        "partition": m.partition(), "offset": m.offset(), "timestamp": timestamp, "log_append": log_append,
        "key": encode(m.key()), "value": encode(m.payload()), "headers": headers,
    })
}

fn say(what: Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{what}"); // the other side may be gone
    let _ = out.flush();
}

fn run(call: &Call) -> Answer {
    match call.text("op") {
        "produce" => produce::produce(call),
        "stream" => produce::stream(call),
        "consume" => consume::consume(call),
        "member" => member::member(call),
        "transact" => transactions::transact(call),
        "copy" if call.number("die") > 0 => member::dying(call),
        "copy" => transactions::copy(call, None),
        "list_offset" => admin::list_offset(call),
        "create_topic" => admin::create_topic(call),
        "delete_topic" => admin::delete_topic(call),
        "create_partitions" => admin::create_partitions(call),
        "partitions" => admin::partitions(call),
        "topics" => admin::topics(call),
        "topic_configs" => admin::topic_configs(call),
        "commit" => admin::commit(call),
        "committed" => admin::committed(call),
        op => Err(format!("no such command: {op}").into()),
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("dying") {
        member::die();
    }
    let stops: Arc<Mutex<HashMap<i64, Arc<AtomicBool>>>> = Arc::default();
    for line in std::io::stdin().lock().lines() {
        let args: Value = serde_json::from_str(&line.expect("lines of text")).expect("commands are JSON");
        if args["op"] == "stop" {
            if let Some(stopped) = stops.lock().unwrap().get(&args["target"].as_i64().unwrap_or(0)) {
                stopped.store(true, Ordering::Relaxed);
            }
            continue;
        }
        let call = Call { id: args["id"].as_i64().unwrap_or(0), args, stopped: Arc::default() };
        stops.lock().unwrap().insert(call.id, call.stopped.clone());
        let stops = stops.clone();
        std::thread::spawn(move || {
            let answer = run(&call);
            stops.lock().unwrap().remove(&call.id);
            say(match answer {
                Ok(result) => json!({"id": call.id, "ok": result}),
                Err(f) => json!({"id": call.id, "error": f.name, "message": f.message}),
            });
        });
    }
}

/// A command that did not come from the conversation.
pub fn call_of(args: Value) -> Call {
    Call { id: 0, args, stopped: Arc::default() }
}
