import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** Writes the topics of kafka-4.4.0 through a running Apache Kafka 4.4.0 broker: Gold BOOTSTRAP PHASE. */
public class Gold {
    static String bootstrap;
    static long clock = System.currentTimeMillis() - 30_000_000L;

    static KafkaProducer<byte[], byte[]> producer(String codec, boolean idempotent, String txid) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("compression.type", codec);
        p.put("enable.idempotence", Boolean.toString(idempotent));
        p.put("linger.ms", "60000");
        p.put("acks", "all");
        if (txid != null) { p.put("transactional.id", txid); p.put("transaction.timeout.ms", "900000"); }
        return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
    }
    /** one batch of n records */
    static void batch(KafkaProducer<byte[], byte[]> p, String topic, int n, String key) throws Exception {
        List<Future<RecordMetadata>> fs = new ArrayList<>();
        for (int i = 0; i < n; i++)
            fs.add(p.send(new ProducerRecord<>(topic, 0, clock + (i % 3) * 10, (key + i).getBytes(), ("value-" + clock + "-" + i).getBytes())));
        p.flush();
        for (Future<RecordMetadata> f : fs) f.get();
        clock += 500;
    }
    public static void main(String[] a) throws Exception {
        bootstrap = a[0];
        int phase = Integer.parseInt(a[1]);
        clock += phase * 10_000_000L; // rolls: segment.ms is 1,000,000
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            if (phase == 0) {
                Map<String, String> c = Map.of("segment.ms", "1000000", "index.interval.bytes", "300", "retention.ms", "-1");
                Map<String, String> k = new HashMap<>(c);
                k.putAll(Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "0"));
                for (NewTopic t : List.of(new NewTopic("plain", 1, (short) 1).configs(c), new NewTopic("txns", 1, (short) 1).configs(c),
                        new NewTopic("compact", 1, (short) 1).configs(k), new NewTopic("empty", 2, (short) 1)))
                    admin.createTopics(List.of(t)).all().get();
                Thread.sleep(1000);
            }
            for (int i = 0; i < 5; i++) // metadata
                admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, "empty"),
                    List.of(new AlterConfigOp(new ConfigEntry("max.message.bytes", "" + (2000000 + i)), AlterConfigOp.OpType.SET)))).all().get();
            String[] codecs = {"none", "gzip", "snappy", "lz4", "zstd"};
            for (int i = 0; i < 10; i++) {
                try (var p = producer(codecs[i % 5], i % 2 == 0, null)) { batch(p, "plain", 1 + i % 4, "k"); }
                if (i == 4) clock += 2_000_000;
            }
            for (int seg = 0; seg < 2; seg++) {
                for (int i = 0; i < 3; i++)
                    try (var p = producer("none", true, null)) { batch(p, "compact", 4, "c"); }
                clock += 2_000_000;
            }
            clock = System.currentTimeMillis() - 7_000_000L + phase * 2_500_000L;
            var t1 = producer("none", true, "t1"); t1.initTransactions();
            var t2 = producer("lz4", true, "t2-" + phase); t2.initTransactions();
            Properties g = new Properties();
            g.put("bootstrap.servers", bootstrap); g.put("group.id", "g"); g.put("enable.auto.commit", "false"); g.put("auto.offset.reset", "earliest");
            try (var consumer = new KafkaConsumer<>(g, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of("plain"));
                while (consumer.poll(java.time.Duration.ofMillis(200)).isEmpty());
                for (int i = 0; i < 5; i++) {
                    t1.beginTransaction(); batch(t1, "txns", 2, "t");
                    if (i % 2 == 0) t2.beginTransaction();
                    batch(t2, "txns", 2, "u");
                    if (i == 3) t1.sendOffsetsToTransaction(Map.of(new TopicPartition("plain", 0), new OffsetAndMetadata(i)), consumer.groupMetadata());
                    if (i % 2 == 0) t1.abortTransaction(); else t1.commitTransaction();
                    if (i % 2 == 1) t2.abortTransaction();
                    if (i == 2) clock += 2_000_000;
                    consumer.commitSync(Map.of(new TopicPartition("plain", 0), new OffsetAndMetadata(i + 1)));
                }
                if (phase == 0) t2.commitTransaction(); // phase 1 leaves it open
            }
            t1.close();
            try (var p = producer("none", false, null)) { batch(p, "txns", 1, "p"); }
            Thread.sleep(5000); // the cleaner
            if (phase == 1) admin.deleteRecords(Map.of(new TopicPartition("plain", 0), RecordsToDelete.beforeOffset(3))).all().get();
        }
        System.out.println("phase " + phase + " done");
        Runtime.getRuntime().halt(0);
    }
}
