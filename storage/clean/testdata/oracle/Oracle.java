import java.io.*;
import java.lang.reflect.*;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Drives UnifiedLog and Cleaner of Apache Kafka with random operations and prints what they did: Oracle DIR SEED STEPS plain|codecs FILE. */
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
            return new Done();
        }
        public void resizeThreadPool(int n) { }
    }
    static class Done extends FutureTask<Void> implements ScheduledFuture<Void> {
        Done() { super(() -> null); }
        public long getDelay(TimeUnit u) { return 0; }
        public int compareTo(Delayed d) { return 0; }
    }
    static class Producer { short epoch; int sequence; boolean open; }

    static Random r;
    static UnifiedLog log;
    static LogConfig config, deletes;
    static PrintStream out;
    static boolean codecs;
    static int epoch = 0;
    static long checkpoint = 0;
    static Map<Long, Producer> producers = new TreeMap<>();

    static String hex(ByteBuffer b) {
        StringBuilder s = new StringBuilder();
        for (int i = b.position(); i < b.limit(); i++) s.append(String.format("%02x", b.get(i)));
        return s.toString();
    }
    static byte[] bytes(String s) { return s.getBytes(StandardCharsets.UTF_8); }

    static SimpleRecord[] records(int n) {
        SimpleRecord[] made = new SimpleRecord[n];
        for (int i = 0; i < n; i++) {
            byte[] key = r.nextInt(25) == 0 ? null : bytes("k" + r.nextInt(12));
            byte[] value = r.nextInt(5) == 0 ? null : new byte[r.nextInt(60)];
            Header[] headers = r.nextInt(6) == 0 ? new Header[]{new RecordHeader("h", r.nextBoolean() ? null : bytes("v"))} : new Header[0];
            long at = r.nextInt(30) == 0 ? -1 : now - r.nextInt(5000);
            made[i] = new SimpleRecord(at, key, value, headers);
        }
        return made;
    }
    static Compression compression() {
        if (!codecs) return Compression.NONE;
        return switch (r.nextInt(5)) {
            case 0 -> Compression.gzip().build();
            case 1 -> Compression.snappy().build();
            case 2 -> Compression.lz4().build();
            case 3 -> Compression.zstd().build();
            default -> Compression.NONE;
        };
    }
    static void append() throws Exception {
        long id = r.nextInt(4);
        Producer p = producers.computeIfAbsent(id, k -> new Producer());
        int n = 1 + r.nextInt(4);
        MemoryRecords m;
        AppendOrigin origin = AppendOrigin.CLIENT;
        int kind = r.nextInt(20);
        if (kind < 7) {
            m = MemoryRecords.withRecords(compression(), records(n));
        } else if (kind < 15 || !p.open) {
            boolean txn = p.open || r.nextInt(3) != 0;
            m = txn ? MemoryRecords.withTransactionalRecords(compression(), id, p.epoch, p.sequence, records(n))
                : MemoryRecords.withIdempotentRecords(compression(), id, p.epoch, p.sequence, records(n));
            p.sequence += n;
            p.open = txn;
        } else {
            origin = AppendOrigin.COORDINATOR;
            if (r.nextInt(4) == 0) { p.epoch++; p.sequence = 0; }
            m = MemoryRecords.withEndTransactionMarker(0L, now, 0, id, p.epoch,
                new EndTransactionMarker(r.nextBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT, 1));
            p.open = false;
        }
        String text = hex(m.buffer());
        boolean keyless = false;
        if (origin == AppendOrigin.CLIENT) for (org.apache.kafka.common.record.internal.Record x : m.records()) keyless |= !x.hasKey();
        if (keyless) log.updateConfig(deletes); // a compacted topic takes none, but may have them from before
        LogAppendInfo info = log.appendAsLeader(m, epoch, origin, org.apache.kafka.server.common.RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
        out.println("append " + (keyless ? "keyless" : origin == AppendOrigin.CLIENT ? "client" : "marker") + " " + epoch + " " + text + " -> " + info.firstOffset());
        log.updateConfig(config);
    }
    /** A batch of which everything is told that a log holds, whatever the compressor made of it. */
    static String show(RecordBatch b) {
        StringBuilder s = new StringBuilder();
        s.append(b.baseOffset()).append("-").append(b.lastOffset()).append(" e").append(b.partitionLeaderEpoch());
        s.append(" ").append(b.compressionType().name).append(" ").append(b.timestampType() == TimestampType.LOG_APPEND_TIME ? "L" : "C");
        s.append(b.isTransactional() ? "T" : "-").append(b.isControlBatch() ? "C" : "-");
        s.append(" h").append(b.deleteHorizonMs().orElse(-1)).append(" m").append(b.maxTimestamp());
        s.append(" p").append(b.producerId()).append("/").append(b.producerEpoch()).append("/").append(b.baseSequence()).append(" n").append(b.countOrNull());
        for (org.apache.kafka.common.record.internal.Record x : b) {
            s.append(" ").append(x.offset()).append("@").append(x.timestamp()).append(":");
            s.append(x.hasKey() ? hex(x.key()) : "null").append("=").append(x.hasValue() ? hex(x.value()) : "null");
            for (Header h : x.headers()) s.append("+").append(h.key()).append(h.value() == null ? "" : "~" + hex(ByteBuffer.wrap(h.value())));
        }
        return s.toString();
    }
    static String file(File f) throws Exception {
        return f.exists() ? hex(ByteBuffer.wrap(Files.readAllBytes(f.toPath()))) : "";
    }
    static void contents() throws Exception {
        for (LogSegment s : log.logSegments()) {
            boolean active = s == log.activeSegment();
            out.println("segment " + s.baseOffset() + (codecs ? "" : " " + s.size()));
            for (RecordBatch b : s.log().batches()) out.println("batch -> " + show(b));
            out.println("txnindex -> " + file(s.txnIndex().file()));
            if (active || codecs) continue;
            out.println("bytes -> " + file(s.log().file()));
            s.offsetIndex().flush();
            s.timeIndex().flush();
            out.println("index -> " + file(s.offsetIndex().file()));
            out.println("timeindex -> " + file(s.timeIndex().file()));
        }
        out.println("end");
    }
    static Object invoke(Class<?> c, String name, Object on, Object... args) throws Exception {
        for (Method m : c.getDeclaredMethods())
            if (m.getName().equals(name) && m.getParameterCount() == args.length) {
                m.setAccessible(true);
                return m.invoke(on, args);
            }
        throw new NoSuchMethodException(name);
    }
    static long field(Object o, String name) throws Exception {
        Field f = o.getClass().getDeclaredField(name);
        f.setAccessible(true);
        return f.getLong(o);
    }
    static void clean() throws Exception {
        int memory = 24 * (r.nextInt(3) == 0 ? 4 + r.nextInt(12) : 1000);
        Object found = invoke(LogCleanerManager.class, "cleanableOffsets", null, log, Optional.of(checkpoint), now);
        long first = field(found, "firstDirtyOffset"), limit = field(found, "firstUncleanableDirtyOffset");
        long delay = (Long) invoke(LogCleanerManager.class, "maxCompactionDelay", null, log, first, now);
        LogToClean c = new LogToClean(log, first, limit, delay > 0);
        String chosen = first + " " + c.firstUncleanableOffset() + " " + c.cleanableBytes() + " " + c.totalBytes() + " " + delay;
        String done = "none";
        if (c.totalBytes() > 0 && (delay > 0 && c.cleanableBytes() > 0 || c.cleanableRatio() > config.minCleanableRatio)) {
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(memory), 1 << 20, 1 << 20, 0.9,
                new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "x", "bytes", new Clock()), new Clock(), tp -> { });
            Map.Entry<Long, CleanerStats> e = cleaner.doClean(c, now);
            checkpoint = e.getKey();
            done = "" + checkpoint;
        }
        out.println("clean " + memory + " -> " + chosen + " " + done);
        contents();
    }
    public static void main(String[] a) throws Exception {
        File dir = new File(a[0], "t-0");
        r = new Random(Long.parseLong(a[1]));
        int steps = Integer.parseInt(a[2]);
        codecs = a[3].equals("codecs");
        out = new PrintStream(new FileOutputStream(a[4]));
        int segment = 500 + r.nextInt(1500), interval = 50 + r.nextInt(300), index = r.nextInt(3) == 0 ? 64 : 4096;
        long shortest = r.nextInt(2) == 0 ? 0 : 500_000, longest = r.nextInt(2) == 0 ? Long.MAX_VALUE : 1_500_000, retention = 3_000_000;
        double ratio = r.nextInt(2) == 0 ? 0.5 : 0.0;
        Map<String, Object> settings = new HashMap<>(Map.of("internal.segment.bytes", segment, "index.interval.bytes", interval, "segment.index.bytes", index,
            "cleanup.policy", "compact", "min.compaction.lag.ms", shortest, "max.compaction.lag.ms", longest, "delete.retention.ms", retention,
            "min.cleanable.dirty.ratio", ratio, "message.timestamp.type", r.nextInt(4) == 0 ? "LogAppendTime" : "CreateTime"));
        settings.put("message.timestamp.after.max.ms", Long.MAX_VALUE);
        config = new LogConfig(settings);
        settings.put("cleanup.policy", "delete");
        deletes = new LogConfig(settings);
        long expiry = 8_000_000;
        out.println("options " + segment + " " + interval + " " + index + " " + shortest + " " + longest + " " + retention + " " + ratio
            + " " + config.messageTimestampType.name + " " + expiry);
        log = UnifiedLog.create(dir, config, 0, 0, new Now(), new BrokerTopicStats(), new Clock(), 900000,
            new ProducerStateManagerConfig((int) expiry, false), 600000, new LogDirFailureChannel(10), true, Optional.empty());
        for (int i = 0; i < steps; i++) {
            now += r.nextInt(20_000);
            out.println("now " + now);
            int k = r.nextInt(100);
            if (k < 75) append();
            else if (k < 90) {
                long hw = r.nextInt(2) == 0 ? log.logEndOffset() : log.highWatermark() + (long) (r.nextDouble() * (log.logEndOffset() - log.highWatermark() + 1));
                log.updateHighWatermark(hw);
                out.println("hw " + hw);
            } else if (k < 92) {
                epoch++;
                log.assignEpochStartOffset(epoch, log.logEndOffset());
                out.println("epoch " + epoch + " " + log.logEndOffset());
            } else if (k < 93) {
                for (Map.Entry<Long, Producer> e : producers.entrySet()) { // those that expire begin anew
                    if (!e.getValue().open && r.nextInt(2) == 0) { e.getValue().epoch++; e.getValue().sequence = 0; }
                }
                log.removeExpiredProducers(now);
                out.println("expire -> " + log.producerStateManager().activeProducers().size());
            } else if (k < 94) {
                now += r.nextInt(4_000_000);
                out.println("now " + now);
            } else clean();
        }
        log.close();
    }
}
