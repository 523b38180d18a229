import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/** Instances of Kafka Streams applications, by names. Several may live in one JVM, each with a state directory of its own. */
final class StreamsOps {
    private static final Map<String, Instance> INSTANCES = new ConcurrentHashMap<>();

    private StreamsOps() { }

    /** One instance, with what it has told of itself. */
    private static final class Instance implements StateRestoreListener {
        private final KafkaStreams streams;
        private final CountDownLatch settled = new CountDownLatch(1);
        private final Map<String, ObjectNode> restored = new ConcurrentHashMap<>();
        private volatile Throwable failure;

        Instance(Driver.Call call) {
            streams = new KafkaStreams(Topologies.build(call), settings(call));
            streams.setGlobalStateRestoreListener(this);
            streams.setUncaughtExceptionHandler(e -> {
                failure = e;
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING || now == KafkaStreams.State.ERROR) {
                    settled.countDown();
                }
            });
        }

        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            restored.put(partition.toString(), Driver.JSON.createObjectNode().put("start", start).put("end", end).put("records", -1));
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long records) { }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long records) {
            restored.get(partition.toString()).put("records", records);
        }
    }

    private static Properties settings(Driver.Call call) {
        Properties p = new Properties();
        p.put("bootstrap.servers", call.text("bootstrap"));
        p.put("application.id", call.text("application"));
        p.put("client.id", call.text("name"));
        p.put("state.dir", call.text("state_dir"));
        p.put("processing.guarantee", call.text("guarantee").isEmpty() ? "at_least_once" : call.text("guarantee"));
        p.put("group.protocol", call.text("protocol").isEmpty() ? "classic" : call.text("protocol"));
        p.put("num.standby.replicas", call.number("standbys", 0));
        p.put("num.stream.threads", call.number("threads", 1));
        p.put("commit.interval.ms", 100);
        p.put("repartition.purge.interval.ms", 500);
        p.put("statestore.cache.max.bytes", 0);
        p.put("consumer.auto.offset.reset", "earliest");
        p.put("producer.linger.ms", 5);
        p.put("reconnect.backoff.max.ms", 200);
        p.put("enable.metrics.push", false);
        p.put("default.key.serde", Serdes.StringSerde.class);
        p.put("default.value.serde", Serdes.StringSerde.class);
        call.args().path("topic").properties().forEach(e -> p.put("topic." + e.getKey(), e.getValue().asText()));
        if (!call.text("protocol").equals("streams")) {
            p.put("main.consumer.session.timeout.ms", call.number("session_ms", 45_000));
            p.put("main.consumer.heartbeat.interval.ms", 200);
        }
        if (call.text("guarantee").equals("exactly_once_v2")) {
            p.put("producer.transaction.timeout.ms", call.number("transaction_ms", 10_000));
        }
        return p;
    }

    /** Starts an instance and returns when it runs; with "wait" false at once. An instance that fails is an error. */
    static JsonNode start(Driver.Call call) throws Exception {
        Instance instance = new Instance(call);
        INSTANCES.put(call.text("name"), instance);
        instance.streams.start();
        if (!instance.settled.await(call.number("wait_ms", 300_000), TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("the instance is " + instance.streams.state() + ", not running");
        }
        return describe(instance);
    }

    /** What the instance is and holds: its state, tasks, what it restored, and the failure that ended it. */
    static JsonNode state(Driver.Call call) {
        return describe(INSTANCES.get(call.text("name")));
    }

    private static JsonNode describe(Instance instance) {
        ObjectNode answer = Driver.JSON.createObjectNode();
        answer.put("state", instance.streams.state().name());
        answer.put("failure", chain(instance.failure));
        answer.set("active", tasks(instance, ThreadMetadata::activeTasks));
        answer.set("standby", tasks(instance, ThreadMetadata::standbyTasks));
        answer.put("behind", instance.streams.allLocalStorePartitionLags().values().stream()
            .flatMap(partitions -> partitions.values().stream()).mapToLong(LagInfo::offsetLag).sum());
        ObjectNode restored = answer.putObject("restored");
        instance.restored.forEach((partition, what) -> restored.set(partition, what.deepCopy()));
        return answer;
    }

    private static ArrayNode tasks(Instance instance, Function<ThreadMetadata, Set<TaskMetadata>> kind) {
        Set<String> names = new TreeSet<>();
        if (instance.streams.state() == KafkaStreams.State.RUNNING || instance.streams.state() == KafkaStreams.State.REBALANCING) {
            for (ThreadMetadata thread : instance.streams.metadataForLocalThreads()) {
                kind.apply(thread).forEach(task -> names.add(task.taskId().toString()));
            }
        }
        ArrayNode answer = Driver.JSON.createArrayNode();
        names.forEach(answer::add);
        return answer;
    }

    /** The classes and messages of an exception and its causes. */
    private static String chain(Throwable t) {
        StringBuilder text = new StringBuilder();
        for (Throwable at = t; at != null; at = at.getCause()) {
            text.append(text.isEmpty() ? "" : " <- ").append(at.getClass().getSimpleName()).append(": ").append(at.getMessage());
        }
        return text.toString();
    }

    /** What a store of the instance holds, all keys with their values. */
    static JsonNode store(Driver.Call call) {
        ObjectNode answer = Driver.JSON.createObjectNode();
        KafkaStreams streams = INSTANCES.get(call.text("name")).streams;
        var store = streams.store(StoreQueryParameters.fromNameAndType(call.text("store"), QueryableStoreTypes.<String, Object>keyValueStore()));
        try (var all = store.all()) {
            all.forEachRemaining(entry -> answer.put(entry.key, entry.value.toString()));
        }
        return answer;
    }

    static JsonNode stop(Driver.Call call) {
        Instance instance = INSTANCES.remove(call.text("name"));
        CloseOptions options = CloseOptions.timeout(Duration.ofSeconds(120))
            .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP);
        boolean closed = instance.streams.close(options);
        if (call.args().path("clean").asBoolean()) {
            instance.streams.cleanUp();
        }
        return Driver.JSON.getNodeFactory().booleanNode(closed);
    }
}
