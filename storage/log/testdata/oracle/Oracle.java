import java.io.*;
import java.nio.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.*;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Drives UnifiedLog of Apache Kafka with random operations and prints what it did: Oracle DIR SEED STEPS none|truncate|start|verify FILE. */
public class Oracle {
    static long now = 1_700_000_000_000L;
    static class Clock implements Time {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public void sleep(long ms) { }
    }
    static class Now implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
            if (delay <= 0 && period < 0) task.run();
            return new FutureTask2();
        }
        public void resizeThreadPool(int n) { }
    }
    static class FutureTask2 extends FutureTask<Void> implements ScheduledFuture<Void> {
        FutureTask2() { super(() -> null); }
        public long getDelay(TimeUnit u) { return 0; }
        public int compareTo(Delayed d) { return 0; }
    }
    static Random r;
    static UnifiedLog log;
    static File dir;
    static LogConfig config;
    static int epoch = 0;
    static PrintStream out;
    static boolean verifies;
    static Map<VerificationGuard, Integer> guards = new IdentityHashMap<>();
    static Map<Long, VerificationGuard> given = new HashMap<>(); // by producer, the newest, perhaps used already

    static int number(VerificationGuard g) {
        return g == VerificationGuard.SENTINEL ? 0 : guards.computeIfAbsent(g, k -> guards.size() + 1);
    }
    /** Begins a verification and prints its guard. */
    static void verify(long pid, int e, int sequence) {
        boolean bump = r.nextInt(3) == 0;
        String result;
        try {
            VerificationGuard g = log.maybeStartTransactionVerification(pid, sequence, (short) e, bump);
            given.put(pid, g);
            result = "" + number(g);
        } catch (Exception x) {
            result = "error " + Errors.forException(x).name();
        }
        out.println("verify " + pid + " " + e + " " + sequence + " " + bump + " -> " + result);
    }

    static void open(boolean clean, long start, long recovery) throws Exception {
        log = UnifiedLog.create(dir, config, start, recovery, new Now(), new BrokerTopicStats(), new Clock(), 900000,
            new ProducerStateManagerConfig(verifies ? 4_000_000 : 2_000_000_000, verifies), 600000, new LogDirFailureChannel(10), clean, Optional.empty());
    }
    static String hex(ByteBuffer b) {
        StringBuilder s = new StringBuilder();
        for (int i = b.position(); i < b.limit(); i++) s.append(String.format("%02x", b.get(i)));
        return s.toString();
    }
    static Map<Long, int[]> producers = new TreeMap<>(); // epoch, next sequence, in transaction

    static long timestamp() {
        switch (r.nextInt(14)) {
            case 0: return now - 1_000_000_000L;
            case 1: return now - 100_000_000L;
            case 2: return now + 3_000_000L;
        }
        return now - r.nextInt(1000);
    }
    static SimpleRecord[] records(int n) {
        SimpleRecord[] rs = new SimpleRecord[n];
        for (int i = 0; i < n; i++) rs[i] = new SimpleRecord(timestamp(), r.nextInt(4) == 0 ? null : new byte[]{1}, new byte[r.nextInt(40)]);
        return rs;
    }
    static void append() throws Exception {
        long pid = r.nextInt(5);
        int[] p = producers.computeIfAbsent(pid, k -> new int[]{0, r.nextInt(3) == 0 ? Integer.MAX_VALUE - 5 : 0, 0, 0});
        int n = 1 + r.nextInt(4);
        MemoryRecords m;
        AppendOrigin origin = AppendOrigin.CLIENT;
        short tv = 0;
        VerificationGuard guard = VerificationGuard.SENTINEL;
        int kind = r.nextInt(20);
        if (kind < 4) {
            m = MemoryRecords.withRecords(Compression.NONE, records(n));
        } else if (kind < 16) {
            int sequence = p[1], e = p[0];
            int odd = r.nextInt(12);
            if (odd == 0) sequence = Math.max(0, p[3]); // perhaps a duplicate
            if (odd == 1) sequence = r.nextInt(20);
            if (odd == 2) { e++; sequence = r.nextInt(3) == 0 ? 3 : 0; }
            if (odd == 3 && e > 0) e--;
            boolean txn = p[2] == 1 && r.nextInt(15) != 0 || kind < 7;
            if (verifies && kind < 12) {
                txn = true;
                if (r.nextInt(8) != 0) verify(pid, e, r.nextInt(10) == 0 ? sequence + r.nextInt(3) - 1 : sequence);
                if (r.nextInt(10) == 0) end(pid, p); // before the answer of the coordinator comes
                if (r.nextInt(10) != 0) guard = given.getOrDefault(pid, VerificationGuard.SENTINEL);
            }
            if (verifies && r.nextInt(12) == 0) origin = AppendOrigin.COORDINATOR;
            m = txn ? MemoryRecords.withTransactionalRecords(Compression.NONE, pid, (short) e, sequence, records(n))
                : MemoryRecords.withIdempotentRecords(Compression.NONE, pid, (short) e, sequence, records(n));
        } else {
            origin = AppendOrigin.COORDINATOR;
            tv = (short) r.nextInt(3);
            int e = p[0] + (tv == 2 && r.nextInt(5) != 0 ? 1 : 0) - (r.nextInt(10) == 0 ? 1 : 0);
            if (e < 0) e = 0;
            m = MemoryRecords.withEndTransactionMarker(0L, now, 0, pid, (short) e,
                new EndTransactionMarker(r.nextBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT, r.nextInt(8) == 0 ? 0 : 1));
        }
        String bytes = hex(m.buffer());
        RecordBatch b = m.batches().iterator().next();
        String result;
        int segments = log.logSegments().size();
        boolean written = false;
        int latest = log.latestEpoch().orElse(-1);
        try {
            long end = log.logEndOffset();
            LogAppendInfo info = log.appendAsLeader(m, epoch, origin, org.apache.kafka.server.common.RequestLocal.noCaching(), guard, tv);
            boolean duplicate = log.logEndOffset() == end;
            written = !duplicate;
            result = (duplicate ? "duplicate " : "ok ") + info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime();
            if (!duplicate && b.hasProducerId()) {
                p[0] = b.producerEpoch();
                if (b.isControlBatch()) { p[2] = 0; if (tv == 2) { p[1] = 0; p[3] = 0; } }
                else { p[3] = b.baseSequence(); p[1] = DefaultRecordBatch.incrementSequence(b.lastSequence(), 1); p[2] = b.isTransactional() ? 1 : p[2]; }
            }
        } catch (Exception e) {
            result = "error " + Errors.forException(e).name();
        }
        String who = origin == AppendOrigin.CLIENT ? "client" : b.isControlBatch() ? "marker" : "coordinator";
        out.println("append " + who + " " + tv + " " + epoch + " " + bytes + (verifies ? " " + number(guard) : "") + " -> " + result);
        // Kafka rolls before it looks at the producer; we roll only for what is written.
        if (!written && log.logSegments().size() != segments) out.println("roll");
        // The same goes for the leader epoch.
        if (!written && log.latestEpoch().orElse(-1) != latest) out.println("epoch " + epoch + " " + log.logEndOffset());
    }
    /** Ends a producer's transaction in between. */
    static void end(long pid, int[] p) throws Exception {
        MemoryRecords m = MemoryRecords.withEndTransactionMarker(0L, now, 0, pid, (short) p[0], new EndTransactionMarker(ControlRecordType.ABORT, 1));
        String bytes = hex(m.buffer());
        String result;
        int segments = log.logSegments().size();
        boolean written = false;
        try {
            LogAppendInfo info = log.appendAsLeader(m, epoch, AppendOrigin.COORDINATOR, org.apache.kafka.server.common.RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 1);
            written = true;
            result = "ok " + info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime();
            p[2] = 0;
        } catch (Exception e) {
            result = "error " + Errors.forException(e).name();
        }
        out.println("append marker 1 " + epoch + " " + bytes + " 0 -> " + result);
        if (!written && log.logSegments().size() != segments) out.println("roll");
    }
    static long boundary(long least) throws Exception {
        List<Long> bases = new ArrayList<>();
        for (LogSegment s : log.logSegments())
            for (RecordBatch b : s.log().batches()) if (b.baseOffset() >= least) bases.add(b.baseOffset());
        bases.add(log.logEndOffset());
        return bases.get(r.nextInt(bases.size()));
    }
    static void state() throws Exception {
        out.println("state -> " + log.logStartOffset() + " " + log.logEndOffset() + " " + log.firstUnstableOffset().orElse(-1L)
            + " " + log.latestEpoch().orElse(-1) + " " + log.logSegments().size());
    }
    public static void main(String[] a) throws Exception {
        dir = new File(a[0], "t-0");
        long seed = Long.parseLong(a[1]);
        int steps = Integer.parseInt(a[2]);
        boolean truncates = a[3].equals("truncate"), starts = a[3].equals("start");
        verifies = a[3].equals("verify");
        out = new PrintStream(new FileOutputStream(a[4]));
        r = new Random(seed);
        int segment = 900 + r.nextInt(1500), interval = r.nextInt(300), index = r.nextInt(3) == 0 && !truncates ? 40 : 4096;
        long age = 50_000_000L;
        config = new LogConfig(Map.of("internal.segment.bytes", segment, "index.interval.bytes", interval, "segment.index.bytes", index,
            "segment.ms", age, "retention.ms", 90_000_000L, "retention.bytes", 9000L, "message.timestamp.after.max.ms", Long.MAX_VALUE));
        out.println("options " + segment + " " + interval + " " + index + " " + age + " 90000000 9000" + (verifies ? " 4000000" : ""));
        open(true, 0, 0);
        for (int i = 0; i < steps; i++) {
            now += r.nextInt(200_000);
            out.println("now " + now);
            int k = r.nextInt(100);
            if (k < 70) append();
            else if (k < 80) {
                long hw = log.highWatermark() + (long) (r.nextDouble() * (log.logEndOffset() - log.highWatermark() + 1));
                log.updateHighWatermark(hw);
                out.println("hw " + hw);
            } else if (k < 84) {
                epoch += 1 + r.nextInt(2);
                log.assignEpochStartOffset(epoch, log.logEndOffset());
                out.println("epoch " + epoch + " " + log.logEndOffset());
            } else if (k < 88) {
                int e = r.nextInt(epoch + 2);
                Optional<OffsetAndEpoch> x = log.endOffsetForEpoch(e);
                out.println("endfor " + e + " -> " + x.map(y -> y.epoch() + " " + y.offset()).orElse("-1 -1"));
            } else if (k < 93) {
                long t = r.nextInt(5) == 0 ? -3 : timestamp();
                var x = log.fetchOffsetByTimestamp(t, Optional.empty()).timestampAndOffsetOpt();
                out.println("time " + t + " -> " + x.map(y -> y.timestamp + " " + y.offset + " " + y.leaderEpoch.orElse(-1)).orElse("none"));
            } else if (verifies && k == 93) {
                log.removeExpiredProducers(now);
                out.println("expire -> " + log.producerStateManager().activeProducers().size());
            } else if (k < 95 && !truncates) {
                out.println("retain -> " + log.deleteOldSegments());
            } else if (k < 97 && truncates) {
                long to = boundary(log.logStartOffset());
                log.truncateTo(to);
                out.println("truncate " + to);
                producers.clear();
            } else if (k < 98 && starts) {
                long to = log.logStartOffset() + (long) (r.nextDouble() * (log.highWatermark() - log.logStartOffset() + 1));
                log.maybeIncrementLogStartOffset(to, LogStartOffsetIncrementReason.ClientRecordDeletion);
                out.println("start " + to);
            } else {
                long from = log.logStartOffset(), to = log.logEndOffset();
                StringBuilder s = new StringBuilder();
                for (var t : log.collectAbortedTransactions(from, to)) s.append(" " + t.producerId() + ":" + t.firstOffset());
                out.println("aborted " + from + " " + to + " ->" + s);
            }
            if (i % 5 == 0) state();
        }
        for (var e : new TreeMap<>(log.producerStateManager().activeProducers()).values())
            out.println("producer -> " + e.producerId() + " " + e.producerEpoch() + " " + (e.batchMetadata().isEmpty() ? -1 : ((BatchMetadata) new ArrayList<>(e.batchMetadata()).get(e.batchMetadata().size() - 1)).lastSeq())
                + " " + e.lastTimestamp() + " " + e.coordinatorEpoch() + " " + e.currentTxnFirstOffset().orElse(-1L));
        log.close();
        File[] files = dir.listFiles();
        Arrays.sort(files);
        for (File f : files) {
            byte[] bytes = Files.readAllBytes(f.toPath());
            if (f.getName().endsWith(".deleted")) continue;
            if (f.getName().endsWith(".log")) out.println("file " + f.getName() + " -> " + bytes.length);
            else out.println("file " + f.getName() + " -> " + hex(ByteBuffer.wrap(bytes)));
        }
    }
}
