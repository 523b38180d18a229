import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.Stores;

/** The topologies. What each must put out is modelled in compat/streams_model_test.go. */
final class Topologies {
    private Topologies() { }

    static Topology build(Driver.Call call) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (call.text("topology")) {
            case "stateless" -> stateless(builder, call);
            case "words" -> words(builder, call);
            case "latest" -> latest(builder, call);
            default -> throw new IllegalArgumentException("no topology " + call.text("topology"));
        }
        return builder.build();
    }

    private static KStream<String, String> source(StreamsBuilder builder, Driver.Call call) {
        return builder.stream(call.text("input"), Consumed.with(Serdes.String(), Serdes.String()));
    }

    /**
     * Lines that are not blank, in upper case where their number is even and in lower case where it is odd, with a header that says
     * where they came from and a name out of a global table.
     */
    private static void stateless(StreamsBuilder builder, Driver.Call call) {
        GlobalKTable<String, String> names = builder.globalTable(call.text("names"), Consumed.with(Serdes.String(), Serdes.String()));
        KStream<String, String> lines = source(builder, call).filterNot((id, line) -> line.isBlank()).processValues(Origin::new);
        List<KStream<String, String>> branches = new ArrayList<>();
        lines.split(Named.as("case-"))
            .branch((id, line) -> Integer.parseInt(id) % 2 == 0,
                Branched.withConsumer(even -> branches.add(even.mapValues(line -> line.toUpperCase(Locale.ROOT)))))
            .defaultBranch(Branched.withConsumer(odd -> branches.add(odd.mapValues(line -> line.toLowerCase(Locale.ROOT)))));
        branches.get(0).merge(branches.get(1))
            .leftJoin(names, (id, line) -> id, (line, name) -> (name == null ? "nobody" : name) + ": " + line)
            .to(call.text("output"), Produced.with(Serdes.String(), Serdes.String()));
    }

    private static final class Origin implements FixedKeyProcessor<String, String, String> {
        private FixedKeyProcessorContext<String, String> context;

        @Override
        public void init(FixedKeyProcessorContext<String, String> given) {
            context = given;
        }

        @Override
        public void process(FixedKeyRecord<String, String> record) {
            String from = context.recordMetadata().map(m -> m.partition() + "-" + m.offset()).orElse("nowhere");
            record.headers().add("from", from.getBytes(StandardCharsets.UTF_8));
            context.forward(record);
        }
    }

    /**
     * Counts words. The value of a word is "COUNT:IDS": how often it was counted, and the sorted ids of its lines. The ids come out
     * the same when a line is taken twice, the count does not. With "windows" there is a count by hours too.
     */
    private static void words(StreamsBuilder builder, Driver.Call call) {
        KGroupedStream<String, String> byWord = source(builder, call)
            .flatMap((id, line) -> {
                List<KeyValue<String, String>> words = new ArrayList<>();
                for (String word : line.toLowerCase(Locale.ROOT).split("[^a-z0-9]+")) {
                    if (!word.isEmpty()) {
                        words.add(KeyValue.pair(word, id));
                    }
                }
                return words;
            })
            .groupByKey(Grouped.with("by-word", Serdes.String(), Serdes.String()));
        KeyValueBytesStoreSupplier store = call.text("store").equals("memory")
            ? Stores.inMemoryKeyValueStore("words") : Stores.persistentTimestampedKeyValueStore("words");
        byWord.aggregate(() -> "0:", (word, id, sum) -> add(sum, id),
                Materialized.<String, String>as(store).withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .toStream().to(call.text("output"), Produced.with(Serdes.String(), Serdes.String()));
        if (call.args().path("windows").asBoolean()) {
            byWord.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofHours(1), Duration.ofHours(48))).count(Materialized.as("hours")).toStream()
                .map((word, n) -> KeyValue.pair(word.key() + "@" + word.window().start(), n.toString()))
                .to(call.text("output") + "-hours", Produced.with(Serdes.String(), Serdes.String()));
        }
    }

    /** Keeps the latest value of each key, deletions too, and counts the keys by the first letter of their values. */
    private static void latest(StreamsBuilder builder, Driver.Call call) {
        KTable<String, String> table = builder.table(call.text("input"), Consumed.with(Serdes.String(), Serdes.String()),
            Materialized.<String, String>as(Stores.persistentTimestampedKeyValueStore("latest")).withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
        table.groupBy((key, value) -> KeyValue.pair(value.substring(0, 1), key), Grouped.with("by-letter", Serdes.String(), Serdes.String()))
            .count(Materialized.as("letters"))
            .toStream().mapValues(n -> n.toString()).to(call.text("output"), Produced.with(Serdes.String(), Serdes.String()));
    }

    private static String add(String sum, String id) {
        int colon = sum.indexOf(':');
        TreeSet<Integer> ids = new TreeSet<>();
        for (String known : sum.substring(colon + 1).split(",")) {
            if (!known.isEmpty()) {
                ids.add(Integer.valueOf(known));
            }
        }
        ids.add(Integer.valueOf(id));
        String all = ids.stream().map(String::valueOf).collect(Collectors.joining(","));
        return (Integer.parseInt(sum.substring(0, colon)) + 1) + ":" + all;
    }
}
