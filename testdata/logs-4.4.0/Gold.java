import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.*;
import org.apache.kafka.common.serialization.*;

/** Writes the topics of logs-4.4.0 through a running Apache Kafka 4.4.0 broker: Gold BOOTSTRAP PHASE. */
public class Gold {
    static String bootstrap;
    static final long START = System.currentTimeMillis() - 30_000_000L; // old enough for jumps, young enough not to expire
    static long clock = START;

    static Properties props(String codec, boolean idempotent, String txid) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("compression.type", codec);
        p.put("enable.idempotence", Boolean.toString(idempotent));
        p.put("linger.ms", "60000");
        p.put("batch.size", "100000");
        p.put("acks", "all");
        if (txid != null) { p.put("transactional.id", txid); p.put("transaction.timeout.ms", "900000"); }
        return p;
    }
    static KafkaProducer<byte[], byte[]> producer(String codec, boolean idempotent, String txid) {
        return new KafkaProducer<>(props(codec, idempotent, txid), new ByteArraySerializer(), new ByteArraySerializer());
    }
    /** one batch of n records */
    static void batch(KafkaProducer<byte[], byte[]> p, String topic, int n, int size, long step, Random r) throws Exception {
        List<Future<RecordMetadata>> fs = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            byte[] v = new byte[size];
            for (int j = 0; j < size; j++) v[j] = (byte) ('a' + r.nextInt(4));
            RecordHeaders h = new RecordHeaders();
            if (i % 2 == 1) h.add("h" + i, i % 3 == 0 ? null : new byte[]{1, 2, 3});
            byte[] key = i % 5 == 4 ? null : ("k" + i).getBytes();
            fs.add(p.send(new ProducerRecord<>(topic, 0, clock + (i % 3) * 10, key, i % 7 == 6 ? null : v, h)));
        }
        p.flush();
        for (Future<RecordMetadata> f : fs) f.get();
        clock += step;
    }
    public static void main(String[] a) throws Exception {
        bootstrap = a[0];
        int phase = Integer.parseInt(a[1]);
        clock += phase * 10_000_000L; // rolls: segment.ms is 1,000,000
        Random r = new Random(phase);
        if (phase == 0) {
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
                Map<String, String> c = Map.of("segment.ms", "1000000", "index.interval.bytes", "300", "retention.ms", "-1");
                Map<String, String> t = new HashMap<>(c); t.put("message.timestamp.type", "LogAppendTime");
                Map<String, String> x = new HashMap<>(c); x.put("segment.ms", "100000");
                admin.createTopics(List.of(new NewTopic("codecs", 1, (short) 1).configs(c), new NewTopic("idem", 1, (short) 1).configs(c),
                    new NewTopic("txns", 1, (short) 1).configs(x), new NewTopic("trimmed", 1, (short) 1).configs(c), new NewTopic("empty", 1, (short) 1).configs(c),
                    new NewTopic("apptime", 1, (short) 1).configs(t))).all().get();
            }
            Thread.sleep(1000);
        }
        String[] codecs = {"none", "gzip", "snappy", "lz4", "zstd"};
        for (int seg = 0; seg < 2; seg++) {
            for (int i = 0; i < 10; i++)
                try (var p = producer(codecs[i % 5], false, null)) { batch(p, "codecs", 1 + r.nextInt(6), 20 + r.nextInt(100), i == 4 ? -700 : 500, r); }
            clock += 2_000_000;
        }
        clock = START + phase * 10_000_000L;
        List<KafkaProducer<byte[], byte[]>> ps = new ArrayList<>();
        for (int i = 0; i < 3; i++) ps.add(producer("none", true, null));
        for (int seg = 0; seg < 2; seg++) {
            for (int i = 0; i < 14; i++) batch(ps.get(i % 4 == 3 ? 0 : i % 3), "idem", 1 + r.nextInt(4), 30, 300, r);
            clock += 2_000_000;
        }
        for (var p : ps) p.close();
        clock = System.currentTimeMillis() + phase * 700_000L;
        var t1 = producer("none", true, "t1"); t1.initTransactions();
        var t2 = producer("lz4", true, "t2"); t2.initTransactions();
        var t3 = producer("none", true, "t3-" + phase); t3.initTransactions();
        var plain = producer("none", false, null);
        for (int seg = 0; seg < 3; seg++) {
            for (int i = 0; i < 4; i++) {
                t1.beginTransaction(); batch(t1, "txns", 2, 40, 100, r);
                t2.beginTransaction(); batch(t2, "txns", 3, 40, 100, r);
                batch(plain, "txns", 1, 20, 100, r);
                batch(t1, "txns", 1, 40, 100, r);
                if (i % 2 == 0) t1.abortTransaction(); else t1.commitTransaction();
                batch(t2, "txns", 1, 40, 100, r);
                if (i % 3 == 0) t2.commitTransaction(); else t2.abortTransaction();
            }
            if (seg == 0) { t3.beginTransaction(); batch(t3, "txns", 1, 10, 100, r); } // spans segments
            clock += 200_000;
            if (seg == 2) {
                if (phase == 0) t3.abortTransaction(); // phase 1 leaves it open
                else { t1.beginTransaction(); batch(t1, "txns", 1, 10, 100, r); t1.commitTransaction(); }
            }
        }
        if (phase == 0) t3.close();
        t1.close(); t2.close(); plain.close();
        clock = START + phase * 10_000_000L;
        try (var p = producer("none", false, null)) {
            for (int i = 0; i < 10; i++) { batch(p, "trimmed", 4, 30, 100, r); if (i == 5) clock += 2_000_000; }
        }
        if (phase == 1)
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
                admin.deleteRecords(Map.of(new TopicPartition("trimmed", 0), RecordsToDelete.beforeOffset(30))).all().get();
            }
        try (var p = producer("none", false, null)) { for (int i = 0; i < 8; i++) batch(p, "apptime", 3, 60, 100, r); }
        System.out.println("phase " + phase + " done");
        Runtime.getRuntime().halt(0);
    }
}
