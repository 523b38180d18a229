import java.util.Map;

/** The driver with the applications: what Driver takes, and Kafka Streams and spring-kafka besides. */
public final class Applications {
    private Applications() { }

    public static void main(String[] args) throws Exception {
        Driver.serve(Map.of(
            "streams_start", StreamsOps::start,
            "streams_state", StreamsOps::state,
            "streams_stop", StreamsOps::stop,
            "streams_store", StreamsOps::store,
            "spring", SpringOps::spring,
            "spring_transactions", SpringOps::transactions));
    }
}
