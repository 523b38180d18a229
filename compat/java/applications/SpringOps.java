import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.config.KafkaListenerEndpointRegistry;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.requestreply.ReplyingKafkaTemplate;
import org.springframework.kafka.support.SendResult;

/** A program made with spring-kafka: a template, and listeners of every kind. */
final class SpringOps {
    /** How long the program waits for what must come. */
    private static final long PATIENCE_SECONDS = 300;

    private SpringOps() { }

    /** What the listeners were given, in the order of their calls. */
    static final class Notes {
        private final Map<String, List<ObjectNode>> byListener = new TreeMap<>();

        synchronized void add(String listener, ObjectNode note) {
            byListener.computeIfAbsent(listener, l -> new ArrayList<>()).add(note);
            notifyAll();
        }

        synchronized void await(String listener, int count) throws InterruptedException {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
            while (byListener.getOrDefault(listener, List.of()).size() < count) {
                long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
                if (left <= 0) {
                    throw new IllegalStateException("listener " + listener + " was given " + byListener.getOrDefault(listener, List.of()).size()
                        + " records of " + count + ": " + byListener.get(listener));
                }
                wait(left);
            }
        }

        synchronized ObjectNode json() {
            ObjectNode answer = Driver.JSON.createObjectNode();
            byListener.forEach((listener, notes) -> notes.forEach(n -> answer.withArray(listener).add(n)));
            return answer;
        }
    }

    /**
     * Runs the program once. "send" holds the records by topics. What the listeners were given comes back by listeners, with the
     * acknowledgements of the template under "sent" and the answers to "questions" under "answers".
     */
    static JsonNode spring(Driver.Call call) throws Exception {
        Notes notes = new Notes();
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
            context.registerBean("notes", Notes.class, () -> notes);
            context.registerBean("bootstrap", String.class, () -> call.text("bootstrap"));
            context.register(SpringBeans.class);
            context.refresh();
            awaitThreads(context.getBean(KafkaListenerEndpointRegistry.class));
            ArrayNode sent = send(context.getBean("template", KafkaTemplate.class), call.args().path("send"));
            // Started only now, so that there is enough for more than one batch.
            context.getBean(KafkaListenerEndpointRegistry.class).getListenerContainer("batches").start();
            for (String listener : List.of("manual", "faulty", "dead", "retried", "batches", "seeking")) {
                notes.await(listener, call.args().path("expect").path(listener).asInt());
            }
            SpringListeners.Seeking seeking = context.getBean(SpringListeners.Seeking.class);
            int before = call.args().path("expect").path("seeking").asInt();
            seeking.seek(0, call.args().path("seek").asLong());
            notes.await("seeking", before + call.number("again", 0));
            ArrayNode answers = ask(context.getBean("asking", ReplyingKafkaTemplate.class), call.args().path("questions"));
            context.close(); // what is acknowledged is committed by then
            ObjectNode answer = notes.json();
            answer.set("sent", sent);
            answer.set("answers", answers);
            return answer;
        }
    }

    /** Waits until the group has given two of the six partitions to each of the three threads. */
    private static void awaitThreads(KafkaListenerEndpointRegistry registry) throws InterruptedException {
        var threads = ((ConcurrentMessageListenerContainer<?, ?>) registry.getListenerContainer("manual")).getContainers();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (threads.stream().anyMatch(t -> t.getAssignedPartitions() == null || t.getAssignedPartitions().size() != 2)) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("the threads are not given two partitions each");
            }
            Thread.sleep(20);
        }
    }

    @SuppressWarnings("unchecked")
    private static ArrayNode send(KafkaTemplate<?, ?> raw, JsonNode topics) throws Exception {
        KafkaTemplate<String, String> template = (KafkaTemplate<String, String>) raw;
        List<java.util.concurrent.CompletableFuture<SendResult<String, String>>> futures = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> topic.getValue().forEach(r ->
            futures.add(template.send(topic.getKey(), r.path("partition").asInt(), r.path("key").asText(), r.path("value").asText()))));
        template.flush();
        ArrayNode sent = Driver.JSON.createArrayNode();
        for (var future : futures) {
            RecordMetadata m = future.get(PATIENCE_SECONDS, TimeUnit.SECONDS).getRecordMetadata();
            sent.addObject().put("topic", m.topic()).put("partition", m.partition()).put("offset", m.offset());
        }
        return sent;
    }

    @SuppressWarnings("unchecked")
    private static ArrayNode ask(ReplyingKafkaTemplate<?, ?, ?> raw, JsonNode questions) throws Exception {
        ReplyingKafkaTemplate<String, String, String> template = (ReplyingKafkaTemplate<String, String, String>) raw;
        if (!template.waitForAssignment(java.time.Duration.ofSeconds(PATIENCE_SECONDS))) {
            throw new IllegalStateException("the topic of replies was not assigned");
        }
        ArrayNode answers = Driver.JSON.createArrayNode();
        for (JsonNode question : questions) {
            answers.add(template.sendAndReceive(new ProducerRecord<>("spring-questions", question.asText()))
                .get(PATIENCE_SECONDS, TimeUnit.SECONDS).value());
        }
        return answers;
    }

    /** One transaction of a template that is committed and one that fails: only the first may be read. */
    static JsonNode transactions(Driver.Call call) {
        Map<String, Object> settings = new HashMap<>(SpringBeans.producer(call.text("bootstrap")));
        DefaultKafkaProducerFactory<String, String> factory = new DefaultKafkaProducerFactory<>(settings);
        factory.setTransactionIdPrefix("spring-tx-");
        try {
            KafkaTemplate<String, String> template = new KafkaTemplate<>(factory);
            for (boolean fails : new boolean[] {false, true}) {
                try {
                    template.executeInTransaction(t -> {
                        call.args().path("values").forEach(v -> t.send(call.text("topic"), fails + "-" + v.asText()));
                        if (fails) {
                            throw new IllegalStateException("changed its mind");
                        }
                        return null;
                    });
                } catch (IllegalStateException e) {
                    if (!fails) {
                        throw e;
                    }
                }
            }
            return Driver.JSON.createObjectNode();
        } finally {
            factory.destroy();
        }
    }
}
