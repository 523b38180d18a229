import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.listener.AbstractConsumerSeekAware;
import org.springframework.kafka.support.Acknowledgment;
import org.springframework.messaging.handler.annotation.SendTo;

/** The listeners of the spring-kafka program; each notes what it was given. */
final class SpringListeners {
    private SpringListeners() { }

    static ObjectNode note(ConsumerRecord<String, String> r) {
        ObjectNode n = Driver.JSON.createObjectNode();
        n.put("topic", r.topic()).put("partition", r.partition()).put("offset", r.offset());
        n.put("key", r.key()).put("value", r.value()).put("thread", Thread.currentThread().getName());
        ObjectNode headers = n.putObject("headers");
        for (Header h : r.headers()) {
            // What spring counts and points to is binary; the rest is text.
            byte[] v = h.value();
            boolean binary = h.key().endsWith("partition") || h.key().endsWith("offset") || h.key().contains("timestamp")
                || h.key().contains("ttempt") || h.key().contains("backoff");
            headers.put(h.key(), binary ? new java.math.BigInteger(v).toString() : new String(v, StandardCharsets.UTF_8));
        }
        return n;
    }

    /** One thread for two partitions each, acknowledging by hand; a record named "later" is given back once. */
    static final class Manual {
        private final SpringOps.Notes notes;
        private final Set<String> givenBack = ConcurrentHashMap.newKeySet();

        Manual(SpringOps.Notes notes) {
            this.notes = notes;
        }

        @KafkaListener(id = "manual", topics = "spring-manual", containerFactory = "manual", concurrency = "3")
        void take(ConsumerRecord<String, String> r, Acknowledgment ack) {
            notes.add("manual", note(r));
            if (r.value().startsWith("later") && givenBack.add(r.value())) {
                ack.nack(Duration.ofMillis(20));
                return;
            }
            ack.acknowledge();
        }
    }

    /** What cannot be taken is tried three times and then put on the dead letter topic. */
    static final class Faulty {
        private final SpringOps.Notes notes;

        Faulty(SpringOps.Notes notes) {
            this.notes = notes;
        }

        @KafkaListener(id = "faulty", topics = "spring-faulty", containerFactory = "errors")
        void take(ConsumerRecord<String, String> r) {
            notes.add("faulty", note(r));
            if (r.value().startsWith("bad")) {
                throw new IllegalArgumentException("cannot take " + r.value());
            }
        }

        @KafkaListener(id = "dead", topics = "spring-faulty-dlt", containerFactory = "plain")
        void dead(ConsumerRecord<String, String> r) {
            notes.add("dead", note(r));
        }
    }

    /** The same without holding up the others: by retry topics. */
    static final class Retried {
        private final SpringOps.Notes notes;

        Retried(SpringOps.Notes notes) {
            this.notes = notes;
        }

        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 50, multiplier = 2), kafkaTemplate = "template", numPartitions = "2",
            replicationFactor = "1", listenerContainerFactory = "plain")
        @KafkaListener(id = "retried", topics = "spring-retried")
        void take(ConsumerRecord<String, String> r) {
            notes.add("retried", note(r));
            if (r.value().startsWith("bad")) {
                throw new IllegalArgumentException("cannot take " + r.value());
            }
        }

        @DltHandler
        void dead(ConsumerRecord<String, String> r) {
            notes.add("retried", note(r));
        }
    }

    /** Takes what one poll brings as one list. */
    static final class Batches {
        private final SpringOps.Notes notes;

        Batches(SpringOps.Notes notes) {
            this.notes = notes;
        }

        @KafkaListener(id = "batches", topics = "spring-batches", containerFactory = "batches", autoStartup = "false")
        void take(List<ConsumerRecord<String, String>> records) {
            for (ConsumerRecord<String, String> r : records) {
                notes.add("batches", note(r).put("batch", records.get(0).partition() + "-" + records.get(0).offset()).put("size", records.size()));
            }
        }
    }

    /** Goes to other offsets when it is told. */
    static final class Seeking extends AbstractConsumerSeekAware {
        private final SpringOps.Notes notes;

        Seeking(SpringOps.Notes notes) {
            this.notes = notes;
        }

        @KafkaListener(id = "seeking", topics = "spring-seek", containerFactory = "plain")
        void take(ConsumerRecord<String, String> r) {
            notes.add("seeking", note(r));
        }

        void seek(int partition, long offset) {
            getCallbacksAndTopics().keySet().forEach(callback -> callback.seek("spring-seek", partition, offset));
        }
    }

    /** Answers what is asked. */
    static final class Answering {
        @KafkaListener(id = "answering", topics = "spring-questions", containerFactory = "answers")
        @SendTo
        String answer(String question) {
            return question.toUpperCase(java.util.Locale.ROOT);
        }
    }
}
