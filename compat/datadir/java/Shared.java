import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Share groups, by reflection: the oldest version, against which this is compiled, has none. */
final class Shared {
    private static final String GROUP = "g-share";

    private Shared() { }

    /** Reads and acknowledges some records as a share group, where share groups are served. */
    static void use(Admin admin, String address) throws Exception {
        var level = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("share.version");
        if (level == null || level.maxVersionLevel() < 1) {
            return;
        }
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.valueOf("GROUP"), GROUP), List.of(
            new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
        Properties p = new Properties();
        p.put("bootstrap.servers", address);
        p.put("group.id", GROUP);
        p.put("key.deserializer", ByteArrayDeserializer.class.getName());
        p.put("value.deserializer", ByteArrayDeserializer.class.getName());
        Class<?> kind = Class.forName("org.apache.kafka.clients.consumer.KafkaShareConsumer");
        Object consumer = kind.getConstructor(Properties.class).newInstance(p);
        kind.getMethod("subscribe", Collection.class).invoke(consumer, List.of("codec-none"));
        int seen = 0;
        for (long end = System.currentTimeMillis() + 60_000; seen < 30 && System.currentTimeMillis() < end;) {
            seen += ((ConsumerRecords<?, ?>) kind.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(500))).count();
            kind.getMethod("commitSync").invoke(consumer);
        }
        kind.getMethod("close").invoke(consumer);
        if (seen < 30) {
            throw new IllegalStateException("the share group has read " + seen + " records");
        }
    }

    /** The groups that only newer versions have, and how far the share group is. */
    static void describe(Admin admin, Set<String> lines) throws Exception {
        Object listed;
        try {
            listed = Admin.class.getMethod("listGroups").invoke(admin);
        } catch (NoSuchMethodException e) {
            return;
        }
        boolean shared = false;
        for (Object group : ((KafkaFuture<Collection<?>>) listed.getClass().getMethod("all").invoke(listed)).get()) {
            Object id = group.getClass().getMethod("groupId").invoke(group);
            String type = group.getClass().getMethod("type").invoke(group).toString(); // an Optional
            if (type.contains("Share") || type.contains("Streams")) {
                lines.add("group " + id + " " + type);
                shared |= id.equals(GROUP);
            }
        }
        if (!shared) {
            return;
        }
        Class<?> spec = Class.forName("org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec");
        Map<String, Object> asked = new HashMap<>();
        asked.put(GROUP, spec.getConstructor().newInstance());
        Object result = Admin.class.getMethod("listShareGroupOffsets", Map.class).invoke(admin, asked);
        Map<?, ?> offsets = ((KafkaFuture<Map<?, ?>>) result.getClass().getMethod("all").invoke(result)).get();
        lines.add("shared " + new java.util.TreeMap<>(toTexts((Map<?, ?>) offsets.get(GROUP))));
    }

    private static Map<String, String> toTexts(Map<?, ?> map) {
        Map<String, String> texts = new HashMap<>();
        // The lag counts records that came meanwhile.
        map.forEach((key, value) -> texts.put(key.toString(), value.toString().replaceAll(", +lag=[^}]*", "")));
        return texts;
    }
}
