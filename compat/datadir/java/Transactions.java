import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Transactions one after another on the topic under-kill, until the process or the server ends. Transaction 7 of the prefix p writes
 * six records with the key p7 and the values p7-0 to p7-5 to both partitions, and commits offset 7 of group g-under-kill. What is said
 * of it once it is committed: "p7", and for each record a blank and "partition:offset:timestamp".
 */
final class Transactions extends Thread {
    private final String prefix;
    private final Consumer<String> committed;
    private final KafkaProducer<byte[], byte[]> producer;
    private volatile boolean deserted;

    Transactions(String address, String prefix, Consumer<String> committed) {
        super("transactions");
        setDaemon(true);
        this.prefix = prefix;
        this.committed = committed;
        this.producer = new Load(address).transactional("under-kill", 60_000);
    }

    @Override
    public void run() {
        try {
            for (int i = 0; ; i++) {
                one(i);
            }
        } catch (Exception e) {
            if (!deserted) {
                e.printStackTrace();
            }
        }
    }

    private void one(int i) throws Exception {
        producer.beginTransaction();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int j = 0; j < 6; j++) {
            sent.add(producer.send(new ProducerRecord<>("under-kill", j % 2, Load.bytes(prefix + i), Load.bytes(prefix + i + "-" + j))));
        }
        producer.sendOffsetsToTransaction(Map.of(new TopicPartition("under-kill", 0), new OffsetAndMetadata(i)), new ConsumerGroupMetadata("g-under-kill"));
        producer.commitTransaction();
        StringBuilder what = new StringBuilder(prefix + i);
        for (Future<RecordMetadata> one : sent) {
            what.append(" ").append(one.get().partition()).append(":").append(one.get().offset()).append(":").append(one.get().timestamp());
        }
        committed.accept(what.toString());
    }

    void desert() throws InterruptedException {
        deserted = true;
        producer.close(Duration.ZERO);
        join();
    }
}
