import java.io.*;
import java.nio.file.*;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Opens each directory below DIR with UnifiedLog after an unclean end, and prints the segments that it then has: Swap DIR. */
public class Swap {
    static class Now implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) { return null; }
        public void resizeThreadPool(int n) { }
    }
    public static void main(String[] a) throws Exception {
        File[] states = new File(a[0]).listFiles();
        Arrays.sort(states);
        LogConfig config = new LogConfig(Map.of("cleanup.policy", "compact", "index.interval.bytes", 200));
        for (File state : states) {
            File dir = new File(state, "t-0");
            StringBuilder line = new StringBuilder(state.getName());
            UnifiedLog log = UnifiedLog.create(dir, config, 0, 0, new Now(), new BrokerTopicStats(), Time.SYSTEM, 900000,
                new ProducerStateManagerConfig(2_000_000_000, false), 600000, new LogDirFailureChannel(10), false, Optional.empty());
            for (LogSegment s : log.logSegments()) {
                byte[] bytes = Files.readAllBytes(s.log().file().toPath());
                byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes);
                line.append(String.format(" %d:%d:%02x%02x%02x%02x", s.baseOffset(), bytes.length, sum[0], sum[1], sum[2], sum[3]));
            }
            System.out.println(line);

        }
    }
}
