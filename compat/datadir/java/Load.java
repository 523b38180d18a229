import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Fills a server with one of everything that a directory can hold. */
final class Load {
    /** Timestamps of records are counted from here, a minute and more apart, so that segment.ms makes many small segments. */
    private static final long BEGIN = 1_700_000_000_000L;
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    private final String address;
    /** Producers whose transactions are left open. */
    private final List<KafkaProducer<byte[], byte[]>> open = new ArrayList<>();

    Load(String address) {
        this.address = address;
    }

    void all() throws Exception {
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", address))) {
            topics(admin);
            records();
            compacted();
            changed(admin);
            transactions();
            groups(admin);
            cluster(admin);
            Shared.use(admin, address);
        }
    }

    /** Drops the open transactions without ending them. */
    void abandon() {
        for (KafkaProducer<byte[], byte[]> producer : open) {
            producer.close(Duration.ZERO);
        }
    }

    private static NewTopic topic(String name, int partitions, String... configs) {
        Map<String, String> map = new HashMap<>();
        for (int i = 0; i < configs.length; i += 2) {
            map.put(configs[i], configs[i + 1]);
        }
        return new NewTopic(name, partitions, (short) 1).configs(map);
    }

    private void topics(Admin admin) throws Exception {
        List<NewTopic> all = new ArrayList<>();
        for (String codec : CODECS) {
            all.add(topic("codec-" + codec, 2, "segment.ms", "600000", "retention.ms", "-1", "index.interval.bytes", "512"));
        }
        all.add(topic("converted", 1, "compression.type", "zstd", "compression.zstd.level", "7"));
        all.add(topic("append-time", 1, "message.timestamp.type", "LogAppendTime"));
        all.add(topic("configured", 3, "retention.ms", "86400000000000", "retention.bytes", "123456789", "max.message.bytes", "2097152",
            "min.insync.replicas", "1", "unclean.leader.election.enable", "true", "flush.messages", "10", "flush.ms", "5000",
            "file.delete.delay.ms", "30000", "segment.bytes", "2097152", "segment.index.bytes", "65536", "preallocate", "true",
            "message.timestamp.before.max.ms", "9000000000000", "delete.retention.ms", "1000"));
        all.add(topic("compacted", 1, "cleanup.policy", "compact", "segment.ms", "600000", "min.cleanable.dirty.ratio", "0.01"));
        all.add(topic("compacted-and-deleted", 1, "cleanup.policy", "compact,delete", "retention.ms", "-1"));
        all.add(topic("deleted", 2));
        all.add(topic("recreated", 3));
        all.add(topic("trimmed", 2, "segment.ms", "600000", "retention.ms", "-1"));
        all.add(topic("emptied", 1));
        all.add(topic("transactions", 2));
        all.add(topic("under-kill", 2));
        all.add(topic("grown", 1));
        all.add(topic("gets-deleted-later", 1));
        all.add(topic("with.dots_and-dashes", 1));
        admin.createTopics(all).all().get();
    }

    private Properties producing(String codec) {
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        p.put("key.serializer", ByteArraySerializer.class.getName());
        p.put("value.serializer", ByteArraySerializer.class.getName());
        p.put("compression.type", codec);
        p.put("batch.size", "2048");
        p.put("linger.ms", "5");
        return p;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int partition, int i) {
        byte[] key = i % 5 == 0 ? null : bytes("key-" + i % 20);
        byte[] value = i % 11 == 7 ? null : bytes(topic + " " + i + " " + "v".repeat(i % 90) + "\u00e9\u4e16");
        ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(topic, partition, BEGIN + i * 61_000L, key, value);
        if (i % 3 == 0) {
            r.headers().add(new RecordHeader("h", bytes("" + i))).add(new RecordHeader("h", null)).add(new RecordHeader("", new byte[0]));
        }
        return r;
    }

    private void fill(String topic, int partitions, int count, String codec, boolean idempotent) throws Exception {
        Properties p = producing(codec);
        p.put("enable.idempotence", "" + idempotent);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(record(topic, i % partitions, i)));
                if (i % 25 == 24) {
                    producer.flush();
                }
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }

    private void records() throws Exception {
        for (String codec : CODECS) {
            fill("codec-" + codec, 2, 200, codec, true);
        }
        fill("codec-none", 2, 50, "none", false);
        fill("converted", 1, 60, "gzip", true);
        fill("append-time", 1, 60, "lz4", true);
        fill("configured", 3, 60, "none", true);
        fill("with.dots_and-dashes", 1, 5, "none", true);
        for (String topic : new String[] {"deleted", "recreated", "trimmed", "gets-deleted-later"}) {
            fill(topic, 1, 100, "none", true);
        }
        fill("emptied", 1, 20, "none", true);
    }

    private void compacted() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(producing("none"))) {
            for (int i = 0; i < 200; i++) {
                byte[] value = i % 17 == 3 ? null : bytes("compacted " + i);
                producer.send(new ProducerRecord<>("compacted", 0, BEGIN + i * 61_000L, bytes("key-" + i % 13), value)).get();
                producer.send(new ProducerRecord<>("compacted-and-deleted", 0, BEGIN + i * 61_000L, bytes("key-" + i % 7), value));
            }
        }
    }

    /** Topics deleted, made anew, cut in front, given partitions and other settings. */
    private void changed(Admin admin) throws Exception {
        admin.deleteTopics(List.of("deleted", "recreated")).all().get();
        for (int tries = 0; ; tries++) {
            try {
                admin.createTopics(List.of(topic("recreated", 2, "retention.ms", "-1"))).all().get();
                break;
            } catch (Exception e) {
                if (tries == 50) {
                    throw e;
                }
                Thread.sleep(100);
            }
        }
        fill("recreated", 2, 30, "none", true);
        admin.createPartitions(Map.of("grown", NewPartitions.increaseTo(4))).all().get();
        fill("grown", 4, 20, "none", true);
        admin.deleteRecords(Map.of(new TopicPartition("trimmed", 0), RecordsToDelete.beforeOffset(17),
            new TopicPartition("emptied", 0), RecordsToDelete.beforeOffset(20))).all().get();
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, "grown"), List.of(
            new AlterConfigOp(new ConfigEntry("retention.ms", "777777777777"), AlterConfigOp.OpType.SET),
            new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND)))).all().get();
    }

    KafkaProducer<byte[], byte[]> transactional(String id, int timeoutMs) {
        Properties p = producing("none");
        p.put("transactional.id", id);
        p.put("transaction.timeout.ms", "" + timeoutMs);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p);
        producer.initTransactions();
        return producer;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String what) {
        for (int i = 0; i < 6; i++) {
            producer.send(new ProducerRecord<>("transactions", i % 2, bytes("k" + i), bytes(what + " " + i)));
        }
        producer.flush();
    }

    private void transactions() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = transactional("ended", 60_000)) {
            for (int round = 0; round < 6; round++) {
                producer.beginTransaction();
                send(producer, (round % 2 == 0 ? "committed " : "aborted ") + round);
                if (round == 2 || round == 3) {
                    producer.sendOffsetsToTransaction(Map.of(new TopicPartition("codec-none", 0), new OffsetAndMetadata(10 + round, "in round " + round)),
                        new ConsumerGroupMetadata("g-transactional"));
                }
                if (round % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        for (String[] one : new String[][] {{"open-short", "5000"}, {"open-long", "600000"}, {"open-kept", "800000"}}) {
            KafkaProducer<byte[], byte[]> producer = transactional(one[0], Integer.parseInt(one[1]));
            producer.beginTransaction();
            send(producer, one[0]);
            if (one[0].equals("open-kept")) {
                producer.sendOffsetsToTransaction(Map.of(new TopicPartition("codec-none", 1), new OffsetAndMetadata(44, "pending")),
                    new ConsumerGroupMetadata("g-pending"));
            }
            open.add(producer);
        }
        fill("transactions", 2, 8, "none", true); // behind the open ones
    }

    private void groups(Admin admin) throws Exception {
        consume("g-classic", "classic", "codec-gzip", "codec-lz4");
        if (protocolConsumer(admin)) {
            consume("g-consumer", "consumer", "codec-zstd", "grown");
        }
        admin.alterConsumerGroupOffsets("g-offsets-only", Map.of(
            new TopicPartition("codec-none", 0), new OffsetAndMetadata(7, java.util.Optional.of(0), "some m\u00e9tadata"),
            new TopicPartition("trimmed", 0), new OffsetAndMetadata(3, ""))).all().get();
    }

    private static boolean protocolConsumer(Admin admin) throws Exception {
        var level = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("group.version");
        return level != null && level.maxVersionLevel() >= 1;
    }

    private void consume(String group, String protocol, String... topics) {
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        p.put("group.id", group);
        p.put("group.protocol", protocol);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("max.poll.records", "40");
        p.put("key.deserializer", ByteArrayDeserializer.class.getName());
        p.put("value.deserializer", ByteArrayDeserializer.class.getName());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p)) {
            Collection<String> names = List.of(topics);
            consumer.subscribe(names);
            int seen = 0;
            for (long end = System.currentTimeMillis() + 60_000; seen < 30 && System.currentTimeMillis() < end;) {
                seen += consumer.poll(Duration.ofMillis(200)).count();
            }
            if (seen < 30) {
                throw new IllegalStateException(group + " has read " + seen + " records");
            }
            Map<TopicPartition, OffsetAndMetadata> commit = new HashMap<>();
            for (TopicPartition tp : consumer.assignment()) {
                commit.put(tp, new OffsetAndMetadata(consumer.position(tp), "by " + group));
            }
            consumer.commitSync(commit);
        }
    }

    /** What is of the cluster, not of a topic: Kept reads it again. */
    private void cluster(Admin admin) throws Exception {
        List<AclBinding> acls = new ArrayList<>();
        for (AclOperation operation : new AclOperation[] {AclOperation.READ, AclOperation.WRITE}) {
            acls.add(new AclBinding(new ResourcePattern(ResourceType.TOPIC, "codec-", PatternType.PREFIXED),
                new AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW)));
        }
        acls.add(new AclBinding(new ResourcePattern(ResourceType.GROUP, "*", PatternType.LITERAL),
            new AccessControlEntry("User:bob", "10.0.0.1", AclOperation.ALL, AclPermissionType.DENY)));
        admin.createAcls(acls).all().get();
        for (ScramMechanism mechanism : new ScramMechanism[] {ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512}) {
            admin.alterUserScramCredentials(List.of(
                new UserScramCredentialUpsertion("alice", new ScramCredentialInfo(mechanism, 5000), "secret"))).all().get();
        }
        Map<String, String> anyUser = new HashMap<>();
        anyUser.put(ClientQuotaEntity.USER, null);
        admin.alterClientQuotas(List.of(
            new ClientQuotaAlteration(new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "alice")),
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 123456789.0))),
            new ClientQuotaAlteration(new ClientQuotaEntity(anyUser),
                List.of(new ClientQuotaAlteration.Op("request_percentage", 250.5))))).all().get();
        admin.incrementalAlterConfigs(Map.of(
            new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "subscribed"), List.of(
                new AlterConfigOp(new ConfigEntry("metrics", "org.apache.kafka.producer."), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("interval.ms", "60000"), AlterConfigOp.OpType.SET)),
            new ConfigResource(ConfigResource.Type.BROKER, ""), List.of(
                new AlterConfigOp(new ConfigEntry("message.max.bytes", "1500000"), AlterConfigOp.OpType.SET)),
            new ConfigResource(ConfigResource.Type.BROKER, "1"), List.of(
                new AlterConfigOp(new ConfigEntry("log.cleaner.threads", "1"), AlterConfigOp.OpType.SET)))).all().get();
    }
}
