import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.requestreply.ReplyingKafkaTemplate;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.util.backoff.FixedBackOff;

/** What the spring-kafka program is made of. Its topics are created by KafkaAdmin, out of the beans below. */
@Configuration(proxyBeanMethods = false)
@EnableKafka
@EnableKafkaRetryTopic
class SpringBeans {
    static Map<String, Object> producer(String bootstrap) {
        return Map.of("bootstrap.servers", bootstrap, "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class,
            "reconnect.backoff.max.ms", 200);
    }

    private static ConsumerFactory<String, String> consumers(String bootstrap, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest",
            "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class, "reconnect.backoff.max.ms", 200));
        settings.putAll(more);
        return new DefaultKafkaConsumerFactory<>(settings);
    }

    private static ConcurrentKafkaListenerContainerFactory<String, String> containers(String bootstrap, Map<String, Object> more) {
        ConcurrentKafkaListenerContainerFactory<String, String> factory = new ConcurrentKafkaListenerContainerFactory<>();
        factory.setConsumerFactory(consumers(bootstrap, more));
        factory.getContainerProperties().setPollTimeout(200);
        factory.getContainerProperties().setShutdownTimeout(Duration.ofSeconds(10).toMillis());
        return factory;
    }

    @Bean
    ProducerFactory<String, String> producers(String bootstrap) {
        return new DefaultKafkaProducerFactory<>(producer(bootstrap));
    }

    @Bean
    KafkaTemplate<String, String> template(ProducerFactory<String, String> producers) {
        return new KafkaTemplate<>(producers);
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> plain(String bootstrap) {
        return containers(bootstrap, Map.of());
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> manual(String bootstrap) {
        ConcurrentKafkaListenerContainerFactory<String, String> factory = containers(bootstrap, Map.of());
        factory.getContainerProperties().setAckMode(ContainerProperties.AckMode.MANUAL_IMMEDIATE);
        return factory;
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> errors(String bootstrap, @Qualifier("template") KafkaTemplate<String, String> template) {
        ConcurrentKafkaListenerContainerFactory<String, String> factory = containers(bootstrap, Map.of());
        factory.getContainerProperties().setAckMode(ContainerProperties.AckMode.RECORD);
        factory.getContainerProperties().setDeliveryAttemptHeader(true);
        DefaultErrorHandler handler = new DefaultErrorHandler(new DeadLetterPublishingRecoverer(template), new FixedBackOff(20, 2));
        handler.removeClassification(IllegalArgumentException.class);
        factory.setCommonErrorHandler(handler);
        return factory;
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> batches(String bootstrap) {
        ConcurrentKafkaListenerContainerFactory<String, String> factory = containers(bootstrap, Map.of("max.poll.records", 10));
        factory.setBatchListener(true);
        return factory;
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<String, String> answers(String bootstrap, @Qualifier("template") KafkaTemplate<String, String> template) {
        ConcurrentKafkaListenerContainerFactory<String, String> factory = containers(bootstrap, Map.of());
        factory.setReplyTemplate(template);
        return factory;
    }

    @Bean
    ReplyingKafkaTemplate<String, String, String> asking(String bootstrap, ProducerFactory<String, String> producers,
        @Qualifier("plain") ConcurrentKafkaListenerContainerFactory<String, String> plain) {
        var container = plain.createContainer("spring-replies");
        container.getContainerProperties().setGroupId("asking");
        return new ReplyingKafkaTemplate<>(producers, container);
    }

    @Bean
    KafkaAdmin admin(String bootstrap) {
        KafkaAdmin admin = new KafkaAdmin(Map.of("bootstrap.servers", bootstrap));
        admin.setFatalIfBrokerNotAvailable(true);
        return admin;
    }

    @Bean
    KafkaAdmin.NewTopics topics() {
        return new KafkaAdmin.NewTopics(topic("spring-manual", 6), topic("spring-faulty", 2), topic("spring-faulty-dlt", 2),
            topic("spring-retried", 2), topic("spring-batches", 3), topic("spring-seek", 1), topic("spring-questions", 2),
            topic("spring-replies", 2));
    }

    private static NewTopic topic(String name, int partitions) {
        return TopicBuilder.name(name).partitions(partitions).replicas(1).build();
    }

    @Bean
    TaskScheduler scheduler() {
        ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
        scheduler.setThreadNamePrefix("retry-");
        return scheduler;
    }

    @Bean
    SpringListeners.Manual manualListener(SpringOps.Notes notes) {
        return new SpringListeners.Manual(notes);
    }

    @Bean
    SpringListeners.Faulty faultyListener(SpringOps.Notes notes) {
        return new SpringListeners.Faulty(notes);
    }

    @Bean
    SpringListeners.Retried retriedListener(SpringOps.Notes notes) {
        return new SpringListeners.Retried(notes);
    }

    @Bean
    SpringListeners.Batches batchListener(SpringOps.Notes notes) {
        return new SpringListeners.Batches(notes);
    }

    @Bean
    SpringListeners.Seeking seekingListener(SpringOps.Notes notes) {
        return new SpringListeners.Seeking(notes);
    }

    @Bean
    SpringListeners.Answering answeringListener() {
        return new SpringListeners.Answering();
    }
}
