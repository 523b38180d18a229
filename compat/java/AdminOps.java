import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** The Java admin client. */
final class AdminOps {
    private AdminOps() { }

    private interface Work {
        JsonNode run(Admin admin, String topic) throws Exception;
    }

    private static JsonNode with(Driver.Call call, Work work) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", call.text("bootstrap")))) {
            return work.run(admin, call.text("topic"));
        }
    }

    private static JsonNode done() {
        return Driver.JSON.createObjectNode();
    }

    static JsonNode createTopic(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            Map<String, String> configs = new HashMap<>();
            call.args().path("configs").fields().forEachRemaining(e -> configs.put(e.getKey(), e.getValue().asText()));
            NewTopic created = new NewTopic(topic, Optional.of(call.number("partitions", 1)), Optional.of((short) 1));
            admin.createTopics(List.of(created.configs(configs))).all().get();
            return done();
        });
    }

    static JsonNode deleteTopic(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            admin.deleteTopics(List.of(topic)).all().get();
            return done();
        });
    }

    static JsonNode createPartitions(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(call.number("total", 0)))).all().get();
            return done();
        });
    }

    static JsonNode partitions(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            TopicDescription description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            for (TopicPartitionInfo p : description.partitions()) {
                if (p.leader() == null) {
                    throw new IllegalStateException("partition " + p.partition() + " has no leader");
                }
            }
            return Driver.JSON.getNodeFactory().numberNode(description.partitions().size());
        });
    }

    static JsonNode topics(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            ArrayNode names = Driver.JSON.createArrayNode();
            admin.listTopics().names().get().stream().sorted().forEach(names::add);
            return names;
        });
    }

    static JsonNode topicConfigs(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            ObjectNode values = Driver.JSON.createObjectNode();
            for (ConfigEntry e : config.entries()) {
                values.put(e.name(), e.value());
            }
            return values;
        });
    }

    static JsonNode deleteRecords(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            TopicPartition partition = new TopicPartition(topic, call.number("partition", 0));
            RecordsToDelete before = RecordsToDelete.beforeOffset(call.args().path("before").asLong());
            long low = admin.deleteRecords(Map.of(partition, before)).lowWatermarks().get(partition).get().lowWatermark();
            return Driver.JSON.getNodeFactory().numberNode(low);
        });
    }

    static JsonNode commit(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            call.args().path("offsets").fields().forEachRemaining(e ->
                offsets.put(new TopicPartition(topic, Integer.parseInt(e.getKey())), new OffsetAndMetadata(e.getValue().asLong())));
            admin.alterConsumerGroupOffsets(call.text("group"), offsets).all().get();
            return done();
        });
    }

    static JsonNode committed(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            ObjectNode offsets = Driver.JSON.createObjectNode();
            admin.listConsumerGroupOffsets(call.text("group")).partitionsToOffsetAndMetadata().get().forEach((partition, offset) -> {
                if (offset != null && partition.topic().equals(topic)) {
                    offsets.put(String.valueOf(partition.partition()), offset.offset());
                }
            });
            return offsets;
        });
    }

    static JsonNode listOffset(Driver.Call call) throws Exception {
        return with(call, (admin, topic) -> {
            TopicPartition partition = new TopicPartition(topic, call.number("partition", 0));
            long at = call.args().path("at").asLong();
            ListOffsetsResultInfo info = admin.listOffsets(Map.of(partition, spec(at))).partitionResult(partition).get();
            return Driver.JSON.createObjectNode().put("offset", info.offset()).put("timestamp", info.timestamp());
        });
    }

    private static OffsetSpec spec(long at) {
        return switch ((int) Math.max(at, -100)) {
            case -1 -> OffsetSpec.latest();
            case -2 -> OffsetSpec.earliest();
            case -3 -> OffsetSpec.maxTimestamp();
            case -4 -> OffsetSpec.earliestLocal();
            case -5 -> OffsetSpec.latestTiered();
            case -6 -> OffsetSpec.earliestPendingUpload();
            default -> OffsetSpec.forTimestamp(at);
        };
    }
}
