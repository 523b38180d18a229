import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/**
 * The Java side of the compatibility suite: one JVM that takes commands as lines of JSON on standard input and answers with
 * lines of JSON on standard output, so that a JVM's start is paid once. Each command runs in a thread of its own.
 *
 * <p>{"id":1,"op":"produce",...} is answered by any number of {"id":1,"progress":N} and then by {"id":1,"ok":...} or
 * {"id":1,"error":"KAFKA_NAME","message":"..."}. {"op":"stop","target":1} ends a stream. The same protocol is spoken by
 * ../python/driver.py.
 */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final Map<Integer, AtomicBoolean> STOPPED = new ConcurrentHashMap<>();

    private Driver() { }

    /** What a command may use while it runs. */
    record Call(int id, JsonNode args, AtomicBoolean stopped) {
        void progress(int n) {
            write(JSON.createObjectNode().put("id", id).put("progress", n));
        }

        String text(String name) {
            return args.path(name).asText("");
        }

        int number(String name, int otherwise) {
            return args.path(name).asInt(otherwise);
        }
    }

    interface Operation {
        JsonNode run(Call call) throws Exception;
    }

    private static final Map<String, Operation> OPERATIONS = Map.ofEntries(
        Map.entry("produce", ProducerOps::produce),
        Map.entry("stream", ProducerOps::stream),
        Map.entry("consume", ConsumerOps::consume),
        Map.entry("consume_near", ConsumerOps::consumeNear),
        Map.entry("member", MemberOps::member),
        Map.entry("create_topic", AdminOps::createTopic),
        Map.entry("delete_topic", AdminOps::deleteTopic),
        Map.entry("create_partitions", AdminOps::createPartitions),
        Map.entry("partitions", AdminOps::partitions),
        Map.entry("topics", AdminOps::topics),
        Map.entry("topic_configs", AdminOps::topicConfigs),
        Map.entry("delete_records", AdminOps::deleteRecords),
        Map.entry("commit", AdminOps::commit),
        Map.entry("committed", AdminOps::committed),
        Map.entry("list_offset", AdminOps::listOffset),
        Map.entry("transact", TransactionOps::transact),
        Map.entry("copy", TransactionOps::copy),
        Map.entry("tool", ToolOps::tool));

    public static void main(String[] args) throws Exception {
        serve(Map.of());
    }

    /** Takes commands until standard input ends: those above, and more. */
    static void serve(Map<String, Operation> more) throws Exception {
        Map<String, Operation> operations = new HashMap<>(OPERATIONS);
        operations.putAll(more);
        ToolOps.takeOverStreams();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ToolOps.takeOverInput();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            String op = request.path("op").asText();
            if (op.equals("stop")) {
                STOPPED.computeIfAbsent(request.path("target").asInt(), id -> new AtomicBoolean()).set(true);
                continue;
            }
            int id = request.path("id").asInt();
            AtomicBoolean stopped = STOPPED.computeIfAbsent(id, i -> new AtomicBoolean());
            Thread thread = new Thread(() -> run(op, operations.get(op), new Call(id, request, stopped)), op + "-" + id);
            thread.setDaemon(true);
            thread.start();
        }
        // The other side has closed its end: it wants no more answers. Not Exit: tools have replaced that.
        Runtime.getRuntime().halt(0);
    }

    private static void run(String op, Operation operation, Call call) {
        ObjectNode answer = JSON.createObjectNode().put("id", call.id());
        try {
            if (operation == null) {
                throw new IllegalArgumentException("unknown op " + op);
            }
            answer.set("ok", operation.run(call));
        } catch (Throwable t) {
            answer.put("error", errorName(t)).put("message", String.valueOf(cause(t)));
        }
        STOPPED.remove(call.id());
        write(answer);
    }

    private static void write(JsonNode node) {
        synchronized (OUT) {
            OUT.println(node);
            OUT.flush();
        }
    }

    static Throwable cause(Throwable t) {
        while (t.getCause() != null && !(t instanceof ApiException)) {
            t = t.getCause();
        }
        return t;
    }

    /** Kafka's name of the error code that an exception stands for; empty for one that is not the protocol's. */
    static String errorName(Throwable t) {
        Throwable cause = cause(t);
        if (cause instanceof org.apache.kafka.clients.consumer.OffsetOutOfRangeException
            || cause instanceof org.apache.kafka.clients.consumer.NoOffsetForPartitionException) {
            return Errors.OFFSET_OUT_OF_RANGE.name();
        }
        if (!(cause instanceof ApiException)) {
            return "";
        }
        return Errors.forException(cause).name();
    }
}
