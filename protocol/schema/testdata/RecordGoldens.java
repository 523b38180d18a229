// Prints goldens of Kafka's log records: one line each with the log, the
// record's name, its version, whether it is a key or value, the bytes in hex and
// the JSON that Kafka's converter prints. See README.md for how it is run.

import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class RecordGoldens {
    static final ObjectMapper JSON = JsonMapper.builder().enable(JsonReadFeature.ALLOW_JAVA_COMMENTS).build();
    static final String[][] LOGS = {
        {"metadata", "kafka-metadata", "common/metadata/", "org.apache.kafka.common.metadata."},
        {"group", "kafka-group-coordinator", "common/message/", "org.apache.kafka.coordinator.group.generated."},
        {"transaction", "kafka-transaction-coordinator", "common/message/", "org.apache.kafka.coordinator.transaction.generated."},
        {"share", "kafka-share-coordinator", "common/message/", "org.apache.kafka.coordinator.share.generated."},
    };

    static Random random;
    static Map<String, JsonNode> common;
    static double keep; // how likely an optional thing is there

    public static void main(String[] args) throws Exception {
        String libs = args[0], release = args[1];
        for (String[] log : LOGS) {
            Map<String, JsonNode> definitions = new TreeMap<>();
            try (JarFile jar = new JarFile(libs + "/" + log[1] + "-" + release + ".jar")) {
                for (Enumeration<JarEntry> e = jar.entries(); e.hasMoreElements(); ) {
                    JarEntry entry = e.nextElement();
                    if (entry.getName().startsWith(log[2]) && entry.getName().endsWith(".json")) {
                        try (InputStream in = jar.getInputStream(entry)) {
                            JsonNode node = JSON.readTree(in);
                            definitions.put(node.get("name").asText(), node);
                        }
                    }
                }
            }
            for (JsonNode definition : definitions.values()) {
                for (int version : versions(definition.get("validVersions").asText())) {
                    print(log, definition, (short) version, "default", 0);
                    print(log, definition, (short) version, "full", 1);
                    print(log, definition, (short) version, "mixed", 0.5);
                    if (in(definition.get("flexibleVersions").asText(), version)) {
                        print(log, definition, (short) version, "tagged", 0.5);
                    }
                }
            }
        }
    }

    static void print(String[] log, JsonNode definition, short version, String variant, double density) throws Exception {
        String name = definition.get("name").asText();
        String type = definition.get("type").asText();
        random = new Random((name + version + variant).hashCode());
        keep = density;
        common = new HashMap<>();
        if (definition.has("commonStructs")) {
            definition.get("commonStructs").forEach(s -> common.put(s.get("name").asText(), s.get("fields")));
        }
        Class<?> converter = Class.forName(log[3] + name + "JsonConverter");
        ApiMessage message = (ApiMessage) converter.getMethod("read", JsonNode.class, short.class)
            .invoke(null, struct(definition.get("fields"), version), version);
        if (variant.equals("tagged")) {
            message.unknownTaggedFields().add(new RawTaggedField(77, new byte[] {1, 2, 3}));
            message.unknownTaggedFields().add(new RawTaggedField(4242, new byte[0]));
        }
        JsonNode json = (JsonNode) converter.getMethod("write", message.getClass(), short.class).invoke(null, message, version);
        byte[] bytes;
        if (type.equals("metadata")) {
            ByteBufferAccessor out = null;
            ApiMessageAndVersion record = new ApiMessageAndVersion(message, version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            MetadataRecordSerde serde = new MetadataRecordSerde();
            ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(record, cache));
            serde.write(record, cache, new ByteBufferAccessor(buffer));
            bytes = buffer.array();
        } else if (type.equals("coordinator-key")) {
            bytes = MessageUtil.toCoordinatorTypePrefixedBytes(message);
        } else {
            bytes = MessageUtil.toVersionPrefixedBytes(version, message);
        }
        System.out.println(String.join("\t", log[0], definition.get("apiKey").asText(), name, type.replaceFirst("coordinator-", ""),
            String.valueOf(version), variant, HexFormat.of().formatHex(bytes), json.toString()));
    }

    static ObjectNode struct(JsonNode fields, int version) {
        ObjectNode node = JSON.createObjectNode();
        for (JsonNode field : fields) {
            String versions = field.has("versions") ? field.get("versions").asText() : field.get("taggedVersions").asText();
            if (!in(versions, version)) continue;
            String name = field.get("name").asText();
            boolean tagged = field.has("taggedVersions") && in(field.get("taggedVersions").asText(), version);
            if (tagged && random.nextDouble() >= keep) continue; // stays at its default
            boolean nullable = field.has("nullableVersions") && in(field.get("nullableVersions").asText(), version);
            node.set(Character.toLowerCase(name.charAt(0)) + name.substring(1), value(field, version, nullable));
        }
        return node;
    }

    static JsonNode value(JsonNode field, int version, boolean nullable) {
        String type = field.get("type").asText();
        if (nullable && random.nextDouble() >= keep) return JSON.nullNode();
        if (type.startsWith("[]")) {
            ArrayNode array = JSON.createArrayNode();
            int n = keep == 0 ? 0 : keep == 1 ? 2 : random.nextInt(4);
            for (int i = 0; i < n; i++) array.add(scalar(field, type.substring(2), version, i));
            return array;
        }
        return scalar(field, type, version, 0);
    }

    static JsonNode scalar(JsonNode field, String type, int version, int index) {
        boolean zero = keep == 0;
        switch (type) {
            case "bool": return JSON.getNodeFactory().booleanNode(!zero && random.nextBoolean());
            case "int8": return JSON.getNodeFactory().numberNode(zero ? 0 : random.nextInt(256) - 128);
            case "int16": return JSON.getNodeFactory().numberNode(zero ? 0 : random.nextInt(65536) - 32768);
            case "uint16": return JSON.getNodeFactory().numberNode(zero ? 0 : random.nextInt(65536));
            case "int32": return JSON.getNodeFactory().numberNode(zero ? 0 : random.nextInt());
            case "int64": return JSON.getNodeFactory().numberNode(zero ? 0 : random.nextLong());
            case "float64":
                double[] some = {1048576, 1e7, 0.001, 9.99e-4, 123456.789, 5e-324, -2.5, 1e21, 100};
                return JSON.getNodeFactory().numberNode(zero ? 0 : some[random.nextInt(some.length)]);
            case "uuid": return JSON.getNodeFactory().textNode((zero ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong())).toString());
            case "bytes":
                byte[] bytes = new byte[zero ? 0 : random.nextInt(5)];
                random.nextBytes(bytes);
                return new BinaryNode(bytes);
            case "string":
                String[] words = {"", "a", "orders-" + index, "näme", "quo\"te\\", "tab\tnew\nline\u0001\u001f", "x".repeat(130), "\ud83d\udc18", "a/b\u007f"};
                return JSON.getNodeFactory().textNode(zero ? "" : words[random.nextInt(words.length)] + index);
            default:
                return struct(field.has("fields") ? field.get("fields") : common.get(type), version);
        }
    }

    static boolean in(String range, int version) {
        if (range.equals("none")) return false;
        if (range.endsWith("+")) return version >= Integer.parseInt(range.substring(0, range.length() - 1));
        return versions(range).contains(version);
    }

    static List<Integer> versions(String range) {
        String[] ends = range.split("-");
        List<Integer> all = new ArrayList<>();
        for (int v = Integer.parseInt(ends[0]); v <= Integer.parseInt(ends[ends.length - 1]); v++) all.add(v);
        return all;
    }
}
