// Asks an Apache Kafka cluster for one of every kind of change that its
// controller writes a record for. See README.md for how it is run.

import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Scenario {
    static Admin admin;

    public static void main(String[] args) throws Exception {
        try (Admin a = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            admin = a;
            if (args[1].equals("first")) first(args[0]); else second();
        }
    }

    static void first(String bootstrap) throws Exception {
        admin.createTopics(List.of(
            new NewTopic("orders", 3, (short) 2).configs(Map.of("retention.ms", "3600000", "min.insync.replicas", "2")),
            new NewTopic("payments", Map.of(0, List.of(1), 1, List.of(2), 2, List.of(1))),
            new NewTopic("short-lived", 2, (short) 1).configs(Map.of("cleanup.policy", "compact")),
            new NewTopic("Ünïcode".replaceAll("[^a-zA-Z]", "_"), 1, (short) 1))).all().get();
        admin.deleteTopics(List.of("short-lived")).all().get();
        admin.createPartitions(Map.of("orders", NewPartitions.increaseTo(5))).all().get();
        set(ConfigResource.Type.TOPIC, "orders", "max.message.bytes", "2000000");
        set(ConfigResource.Type.TOPIC, "orders", "segment.bytes", "10485760");
        unset(ConfigResource.Type.TOPIC, "orders", "segment.bytes");
        set(ConfigResource.Type.TOPIC, "payments", "segment.ms", "60000");
        unset(ConfigResource.Type.TOPIC, "payments", "segment.ms");
        set(ConfigResource.Type.BROKER, "", "log.cleaner.threads", "2");
        set(ConfigResource.Type.BROKER, "1", "log.retention.ms", "7200000");
        set(ConfigResource.Type.GROUP, "readers", "consumer.session.timeout.ms", "50000");
        set(ConfigResource.Type.CLIENT_METRICS, "all", "metrics", "org.apache.kafka.producer.");
        set(ConfigResource.Type.CLIENT_METRICS, "all", "interval.ms", "60000");

        AclBinding read = acl("orders", PatternType.LITERAL, "User:alice", AclOperation.READ, AclPermissionType.ALLOW);
        AclBinding gone = acl("orders", PatternType.LITERAL, "User:carol", AclOperation.WRITE, AclPermissionType.DENY);
        admin.createAcls(List.of(read, gone, acl("pay", PatternType.PREFIXED, "User:bob", AclOperation.ALL, AclPermissionType.ALLOW))).all().get();
        admin.deleteAcls(List.of(gone.toFilter())).all().get();

        quota(new ClientQuotaEntity(Map.of("user", "alice", "client-id", "app")), "producer_byte_rate", 1048576.0);
        quota(new ClientQuotaEntity(Map.of("user", "alice", "client-id", "app")), "consumer_byte_rate", 2.5e7);
        quota(new ClientQuotaEntity(Collections.singletonMap("user", null)), "request_percentage", 12.5);
        quota(new ClientQuotaEntity(Map.of("client-id", "gone")), "producer_byte_rate", 10.0);
        quota(new ClientQuotaEntity(Map.of("client-id", "gone")), "producer_byte_rate", null);
        quota(new ClientQuotaEntity(Map.of("ip", "127.0.0.9")), "connection_creation_rate", 100.0);

        ScramCredentialInfo sha256 = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        ScramCredentialInfo sha512 = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192);
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("dave", sha256, "dave-secret"),
            new UserScramCredentialUpsertion("alice", sha512, "alice-secret-2"),
            new UserScramCredentialUpsertion("erin", sha512, "erin-secret"))).all().get();
        admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("erin", ScramMechanism.SCRAM_SHA_512))).all().get();

        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "acks", "all"),
                new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < 20; i++) producer.send(new ProducerRecord<>("payments", i % 3, null, new byte[100])).get();
        }
        admin.alterPartitionReassignments(Map.of(new TopicPartition("payments", 0),
            Optional.of(new NewPartitionReassignment(List.of(2))))).all().get();
        while (!admin.listPartitionReassignments().reassignments().get().isEmpty()) Thread.sleep(50);
    }

    // second is asked after broker 2 went away and came back.
    static void second() throws Exception {
        try {
            admin.electLeaders(ElectionType.PREFERRED, null).partitions().get();
        } catch (ExecutionException e) {
            System.err.println(e.getCause());
        }
        admin.createTopics(List.of(new NewTopic("late", 2, (short) 1))).all().get();
        admin.updateFeatures(Map.of("streams.version", new FeatureUpdate((short) 0, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
            new UpdateFeaturesOptions()).all().get();
    }

    static AclBinding acl(String topic, PatternType pattern, String principal, AclOperation operation, AclPermissionType permission) {
        return new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, pattern), new AccessControlEntry(principal, "*", operation, permission));
    }

    static void quota(ClientQuotaEntity entity, String key, Double value) throws Exception {
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op(key, value))))).all().get();
    }

    static void set(ConfigResource.Type type, String name, String key, String value) throws Exception {
        alter(type, name, new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET));
    }

    static void unset(ConfigResource.Type type, String name, String key) throws Exception {
        alter(type, name, new AlterConfigOp(new ConfigEntry(key, ""), AlterConfigOp.OpType.DELETE));
    }

    static void alter(ConfigResource.Type type, String name, AlterConfigOp op) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(op))).all().get();
    }
}
