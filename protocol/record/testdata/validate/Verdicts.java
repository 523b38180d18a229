// Lets the log of Apache Kafka 4.4.0 judge record batches; see README.md.
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class Verdicts {
    static final long NOW = 1_700_000_000_000L;
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static PrintWriter out;
    static Set<String> seen = new HashSet<>();

    // ---- judging

    static final Time TIME = new Time() {
        public long milliseconds() { return NOW; }
        public long nanoseconds() { return NOW * 1_000_000; }
        public void sleep(long ms) { }
    };
    static final Scheduler SCHEDULER = new Scheduler() {
        public void startup() { }
        public void shutdown() { }
        public ScheduledFuture<?> schedule(String n, Runnable r, long d, long p) { return null; }
        public void resizeThreadPool(int n) { }
    };
    static final BrokerTopicStats STATS = new BrokerTopicStats();
    static Path work;

    static String judge(String config, byte[] input) throws Exception {
        Properties props = new Properties();
        props.put("segment.index.bytes", "1024");
        int version = 13;
        if (!config.isEmpty())
            for (String kv : config.split(" ")) {
                String[] p = kv.split("=");
                if (p[0].equals("version")) version = Integer.parseInt(p[1]);
                else props.put(p[0], p[1]);
            }
        Path dir = Files.createTempDirectory(work, "t");
        Path logDir = Files.createDirectory(dir.resolve("topic-0"));
        UnifiedLog log = UnifiedLog.create(logDir.toFile(), new LogConfig(props), 0, 0, SCHEDULER, STATS, TIME, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(10), true, Optional.empty());
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(input.clone()));
            ProduceRequest.validateRecords((short) version, records);
            LogAppendInfo info = log.appendAsLeader(records, 7, AppendOrigin.CLIENT, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
            FileRecords stored = (FileRecords) log.read(0, 100 << 20, FetchIsolation.LOG_END, true).records;
            ByteBuffer b = ByteBuffer.allocate(stored.sizeInBytes());
            stored.readInto(b, 0);
            return "0\t\t\t" + b64(b.array()) + "\t" + info.maxTimestamp() + "\t" + info.sourceCompression();
        } catch (RecordValidationException e) {
            StringJoiner errors = new StringJoiner("|");
            for (ProduceResponse.RecordError r : e.recordErrors()) errors.add(r.batchIndex + ":" + r.message);
            return Errors.forException(e.invalidException()).code() + "\t" + e.invalidException().getMessage() + "\t" + errors + "\t\t\t";
        } catch (Throwable t) {
            String message = String.valueOf(t.getMessage()).replaceAll("[\\t\\n\\r]", " ");
            return Errors.forException(t).code() + "\t" + message + "\t\t\t\t" + t.getClass().getSimpleName();
        } finally {
            try { log.closeQuietly(); } catch (Throwable t) { }
            try (var s = Files.walk(dir)) { s.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete()); }
        }
    }

    static void emit(String name, String config, byte[] input) throws Exception {
        if (!seen.add(config + Arrays.toString(input))) return;
        out.println(name + "\t" + config + "\t" + b64(input) + "\t" + judge(config, input));
    }

    static String b64(byte[] b) { return Base64.getEncoder().encodeToString(b); }

    // ---- making

    static Compression codec(String name) {
        switch (name) {
            case "gzip": return Compression.gzip().build();
            case "snappy": return Compression.snappy().build();
            case "lz4": return Compression.lz4().build();
            case "zstd": return Compression.zstd().build();
            default: return Compression.NONE;
        }
    }

    static byte[] bytes(ByteBuffer b) { byte[] r = new byte[b.remaining()]; b.duplicate().get(r); return r; }

    static SimpleRecord rec(long ts, String key, String value, Header... headers) {
        return new SimpleRecord(ts, key == null ? null : key.getBytes(), value == null ? null : value.getBytes(), headers);
    }

    static byte[] batch(String codec, long pid, short epoch, int seq, boolean txn, SimpleRecord... records) {
        ByteBuffer b = ByteBuffer.allocate(4096);
        MemoryRecordsBuilder m = MemoryRecords.builder(b, (byte) 2, codec(codec), TimestampType.CREATE_TIME, 0, -1, pid, epoch, seq, txn, -1);
        for (SimpleRecord r : records) m.append(r);
        return bytes(m.build().buffer());
    }

    static byte[] plain(String codec) {
        return batch(codec, -1, (short) -1, -1, false, rec(NOW - 5, "k0", "value0"), rec(NOW, null, "value1"),
            rec(NOW - 9, "k2", null, new RecordHeader("h", "v".getBytes()), new RecordHeader("", null)));
    }

    static byte[] fix(byte[] batch) { // renews length and checksum
        ByteBuffer b = ByteBuffer.wrap(batch);
        b.putInt(8, batch.length - 12);
        b.putInt(17, (int) Crc32C.compute(batch, 21, batch.length - 21));
        return batch;
    }

    static byte[] crc(byte[] batch) { // renews the checksum only
        ByteBuffer.wrap(batch).putInt(17, (int) Crc32C.compute(batch, 21, batch.length - 21));
        return batch;
    }

    static byte[] cat(byte[]... parts) {
        ByteArrayOutputStream o = new ByteArrayOutputStream();
        for (byte[] p : parts) o.writeBytes(p);
        return o.toByteArray();
    }

    // A batch around hand-made records.
    static byte[] around(String codec, int count, byte[]... records) throws IOException {
        byte[] payload = cat(records);
        ByteBufferOutputStream o = new ByteBufferOutputStream(512);
        try (OutputStream w = codec(codec).wrapForOutput(o, (byte) 2)) { w.write(payload); }
        o.buffer().flip();
        byte[] packed = bytes(o.buffer());
        ByteBuffer b = ByteBuffer.allocate(61 + packed.length);
        int id = Arrays.asList(CODECS).indexOf(codec);
        b.put(16, (byte) 2).putInt(12, -1).putShort(21, (short) id).putInt(23, count - 1).putLong(27, NOW).putLong(35, NOW)
            .putLong(43, -1).putShort(51, (short) -1).putInt(53, -1).putInt(57, count);
        b.position(61);
        b.put(packed);
        return fix(b.array());
    }

    static byte[] v(long x) { // varint, zigzag
        ByteBuffer b = ByteBuffer.allocate(10);
        ByteUtils.writeVarlong(x, b);
        b.flip();
        return bytes(b);
    }

    static byte[] body(byte[]... parts) { byte[] c = cat(parts); return cat(v(c.length), c); }

    static byte[] raw(int... b) { byte[] r = new byte[b.length]; for (int i = 0; i < b.length; i++) r[i] = (byte) b[i]; return r; }

    // A good record with its offset delta.
    static byte[] good(int delta) { return body(raw(0), v(0), v(delta), v(1), raw('k'), v(1), raw('v'), v(0)); }

    // ---- the cases

    public static void main(String[] args) throws Exception {
        work = Files.createTempDirectory("verdicts");
        out = new PrintWriter(args[0]);
        headers();
        lengths();
        handmade();
        compressedPayloads();
        flips();
        configs();
        if (args.length > 1) random(Integer.parseInt(args[1]));
        out.close();
        work.toFile().delete();
    }

    static void headers() throws Exception {
        for (String codec : CODECS) {
            String n = "header/" + codec + "/";
            emit(n + "good", "", plain(codec));
            for (long v : new long[] {1, 5, -1, Long.MAX_VALUE}) { byte[] b = plain(codec); ByteBuffer.wrap(b).putLong(0, v); emit(n + "baseOffset=" + v, "", b); }
            for (int v : new int[] {0, 1, 3, 4, -1, 127}) { byte[] b = plain(codec); b[16] = (byte) v; emit(n + "magic=" + v, "", b); }
            { byte[] b = plain(codec); b[17] ^= 1; emit(n + "crc", "", b); }
            { byte[] b = plain(codec); b[b.length - 1] ^= 1; emit(n + "crc of payload", "", b); }
            for (int v = 0; v < 5; v++) { byte[] b = plain(codec); ByteBuffer.wrap(b).putInt(12, v - 2); emit(n + "leaderEpoch=" + (v - 2), "", b); }
            for (int bit = 0; bit < 16; bit++) {
                byte[] b = plain(codec);
                ByteBuffer w = ByteBuffer.wrap(b);
                w.putShort(21, (short) (w.getShort(21) ^ (1 << bit)));
                emit(n + "attribute bit " + bit, "", crc(b));
            }
            for (int v : new int[] {0, 1, 3, -1, Integer.MAX_VALUE, Integer.MIN_VALUE}) { byte[] b = plain(codec); ByteBuffer.wrap(b).putInt(23, v); emit(n + "lastOffsetDelta=" + v, "", crc(b)); }
            for (int v : new int[] {0, 1, 2, 4, -1, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
                byte[] b = plain(codec); ByteBuffer.wrap(b).putInt(57, v); emit(n + "count=" + v, "", crc(b));
                b = plain(codec); ByteBuffer.wrap(b).putInt(57, v).putInt(23, v - 1); emit(n + "count and delta=" + v, "", crc(b));
            }
            for (long v : new long[] {0, -1, -2, NOW - 10, NOW + 3_600_000, NOW + 3_600_006, NOW + 9_999_999, Long.MAX_VALUE, Long.MIN_VALUE}) {
                byte[] b = plain(codec); ByteBuffer.wrap(b).putLong(27, v); emit(n + "baseTimestamp=" + v, "", crc(b));
                b = plain(codec); ByteBuffer.wrap(b).putLong(35, v); emit(n + "maxTimestamp=" + v, "", crc(b));
                b = plain(codec); ByteBuffer.wrap(b).putLong(35, v).put(22, (byte) (b[22] | 8)); emit(n + "append time, maxTimestamp=" + v, "", crc(b));
            }
            for (long pid : new long[] {0, 5, -2, Long.MIN_VALUE})
                for (int epoch : new int[] {0, 3, -1})
                    for (int seq : new int[] {0, 9, -1, -2, Integer.MAX_VALUE}) {
                        byte[] b = plain(codec); ByteBuffer.wrap(b).putLong(43, pid).putShort(51, (short) epoch).putInt(53, seq);
                        emit(n + "producer " + pid + " " + epoch + " " + seq, "", crc(b));
                    }
            { byte[] b = plain(codec); b[22] |= 0x20; ByteBuffer.wrap(b).putLong(43, 5).putInt(53, -1); emit(n + "control and sequence", "", crc(b)); }
            { byte[] b = plain(codec); b[22] |= 0x20; ByteBuffer.wrap(b).putInt(57, 9); emit(n + "control and count", "", crc(b)); }
            for (String version : new String[] {"3", "6", "7"}) emit(n + "version " + version, "version=" + version, plain(codec));
        }
        emit("header/sequences", "", batch("none", 5, (short) 1, Integer.MAX_VALUE, true, rec(NOW, "a", "b"), rec(NOW, "c", "d")));
    }

    static void lengths() throws Exception {
        emit("length/zero", "", new byte[0]);
        byte[] b = plain("none");
        for (int n = 1; n < b.length; n++) emit("length/cut to " + n, "", Arrays.copyOf(b, n));
        for (int n : new int[] {21, 22, 23, 26, 27, 35, 43, 57, 60, 61, 62, 70}) {
            byte[] c = Arrays.copyOf(b, n);
            ByteBuffer.wrap(c).putInt(8, n - 12);
            emit("length/made shorter to " + n, "", c);
            if (n >= 21) emit("length/made shorter with crc to " + n, "", crc(c.clone()));
        }
        for (int v : new int[] {0, -1, 1, 4, 5, 8, 13, 14, 15, 48, 49, 50, Integer.MAX_VALUE, Integer.MIN_VALUE, b.length - 13, b.length - 11}) {
            byte[] c = b.clone();
            ByteBuffer.wrap(c).putInt(8, v);
            emit("length/field=" + v, "", c);
        }
        emit("length/two", "", cat(b, b));
        emit("length/three", "", cat(b, b, b));
        for (int n = 1; n < b.length; n += 3) emit("length/another cut to " + n, "", cat(b, Arrays.copyOf(b, n)));
        for (int n : new int[] {1, 2, 11, 12, 16, 17, 18, 26, 61, 100}) {
            byte[] zeros = new byte[n], ones = new byte[n];
            Arrays.fill(ones, (byte) 0xff);
            emit("length/zeros behind " + n, "", cat(b, zeros));
            emit("length/ones behind " + n, "", cat(b, ones));
        }
        { byte[] c = b.clone(); c[16] = 1; emit("length/magic 1 behind", "", cat(b, c)); }
        { byte[] c = b.clone(); c[16] = 3; emit("length/magic 3 behind", "", cat(b, c)); }
    }

    static void handmade() throws Exception {
        byte[] longString = new byte[200];
        Map<String, byte[][]> cases = new LinkedHashMap<>();
        cases.put("one", new byte[][] {good(0)});
        cases.put("two", new byte[][] {good(0), good(1)});
        cases.put("deltas 0 0", new byte[][] {good(0), good(0)});
        cases.put("deltas 1 0", new byte[][] {good(1), good(0)});
        cases.put("deltas 0 2", new byte[][] {good(0), good(2)});
        cases.put("delta 1", new byte[][] {good(1)});
        cases.put("delta -1", new byte[][] {good(-1)});
        cases.put("delta max", new byte[][] {good(Integer.MAX_VALUE)});
        cases.put("delta of five bytes over 32 bits", new byte[][] {body(raw(0), v(0), raw(0x80, 0x80, 0x80, 0x80, 0x70), v(1), raw('k'), v(1), raw('v'), v(0))});
        cases.put("delta of six bytes", new byte[][] {body(raw(0), v(0), raw(0x80, 0x80, 0x80, 0x80, 0x80, 0), v(1), raw('k'), v(1), raw('v'), v(0))});
        cases.put("delta of three bytes for 0", new byte[][] {body(raw(0), v(0), raw(0x80, 0x80, 0), v(1), raw('k'), v(1), raw('v'), v(0))});
        cases.put("timestamp of ten bytes", new byte[][] {body(raw(0), raw(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0), v(0), v(1), raw('k'), v(1), raw('v'), v(0))});
        cases.put("timestamp of ten bytes over 64 bits", new byte[][] {body(raw(0), raw(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2), v(0), v(1), raw('k'), v(1), raw('v'), v(0))});
        cases.put("timestamp of eleven bytes", new byte[][] {body(raw(0), raw(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0), v(0), v(1), raw('k'), v(1), raw('v'), v(0))});
        for (long t : new long[] {-1, -NOW, -NOW - 1, -NOW - 2, 3_600_000, 3_600_001, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE - NOW})
            cases.put("timestamp delta " + t, new byte[][] {body(raw(0), v(t), v(0), v(1), raw('k'), v(1), raw('v'), v(0))});
        cases.put("attributes", new byte[][] {body(raw(0xff), v(0), v(0), v(1), raw('k'), v(1), raw('v'), v(0))});
        cases.put("key null", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(1), raw('v'), v(0))});
        cases.put("key length -5", new byte[][] {body(raw(0), v(0), v(0), v(-5), v(1), raw('v'), v(0))});
        cases.put("key empty", new byte[][] {body(raw(0), v(0), v(0), v(0), v(1), raw('v'), v(0))});
        cases.put("key too long", new byte[][] {body(raw(0), v(0), v(0), v(50), v(1), raw('v'), v(0))});
        cases.put("key of 2 GiB", new byte[][] {body(raw(0), v(0), v(0), v(Integer.MAX_VALUE), v(1), raw('v'), v(0))});
        cases.put("value null", new byte[][] {body(raw(0), v(0), v(0), v(1), raw('k'), v(-1), v(0))});
        cases.put("value length min", new byte[][] {body(raw(0), v(0), v(0), v(1), raw('k'), v(Integer.MIN_VALUE), v(0))});
        cases.put("value too long", new byte[][] {body(raw(0), v(0), v(0), v(1), raw('k'), v(3), raw('v'), v(0))});
        cases.put("value into the next record", new byte[][] {body(raw(0), v(0), v(0), v(1), raw('k'), v(6), raw('v'), v(0)), good(1)});
        cases.put("header", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(1), raw('h'), v(1), raw('v'))});
        cases.put("header value null", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(1), raw('h'), v(-1))});
        cases.put("header value length -9", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(1), raw('h'), v(-9))});
        cases.put("header key null", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(-1), v(1), raw('v'))});
        cases.put("header key empty", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(0), v(1), raw('v'))});
        cases.put("header key not UTF-8", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(2), raw(0xff, 0xc0), v(1), raw('v'))});
        cases.put("header key too long", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(9), raw('h'), v(1), raw('v'))});
        cases.put("headers -1", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(-1))});
        cases.put("headers too many", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(2), v(1), raw('h'), v(1), raw('v'))});
        cases.put("headers far too many", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(100_000_000), v(1), raw('h'), v(1), raw('v'))});
        cases.put("headers too few", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1), v(1), v(1), raw('h'), v(1), raw('v'), v(1), raw('h'), v(1), raw('v'))});
        cases.put("header missing", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(-1))});
        byte[] one = good(0);
        for (int d : new int[] {-1, 1, 2, 50, -9}) {
            byte[] lie = one.clone();
            lie[0] = (byte) (lie[0] + 2 * d);
            cases.put("size off by " + d, new byte[][] {lie});
            cases.put("size off by " + d + " and another", new byte[][] {lie, good(1)});
        }
        byte[] rest = Arrays.copyOfRange(one, 1, one.length);
        cases.put("size of five bytes", new byte[][] {raw(0x90, 0x80, 0x80, 0x80, 0), rest});
        cases.put("size of six bytes", new byte[][] {raw(0x90, 0x80, 0x80, 0x80, 0x80, 0), rest});
        cases.put("size 0", new byte[][] {v(0)});
        cases.put("size min", new byte[][] {v(Integer.MIN_VALUE), rest});
        cases.put("size max", new byte[][] {v(Integer.MAX_VALUE), rest});
        cases.put("size cut", new byte[][] {raw(0x80)});
        cases.put("no record", new byte[][] {});
        cases.put("byte behind", new byte[][] {one, raw(0)});
        cases.put("zeros behind", new byte[][] {one, new byte[40]});
        cases.put("large", new byte[][] {body(raw(0), v(0), v(0), v(-1), v(200), longString, v(0))});
        for (var e : cases.entrySet())
            for (String codec : CODECS) {
                int count = Math.max(1, e.getKey().endsWith("behind") ? 1 : e.getValue().length);
                if (e.getKey().startsWith("size") && !e.getKey().endsWith("another")) count = 1;
                emit("handmade/" + codec + "/" + e.getKey(), "", around(codec, count, e.getValue()));
                emit("handmade/" + codec + "/" + e.getKey() + ", compacted", "cleanup.policy=compact", around(codec, count, e.getValue()));
            }
        for (String codec : CODECS) {
            emit("handmade/" + codec + "/limit 100, large", "max.decompressed.message.bytes=100", around(codec, 1, body(raw(0), v(0), v(0), v(-1), v(200), longString, v(0))));
            emit("handmade/" + codec + "/limit 100, small", "max.decompressed.message.bytes=100", around(codec, 1, good(0)));
        }
    }

    static void compressedPayloads() throws Exception {
        for (String codec : CODECS) {
            byte[] b = plain(codec);
            String n = "payload/" + codec + "/";
            for (int cut = 61; cut < b.length; cut++) emit(n + "cut to " + cut, "", fix(Arrays.copyOf(b, cut)));
            for (int more : new int[] {1, 3, 4, 8, 20, 40}) {
                byte[] ones = new byte[more];
                Arrays.fill(ones, (byte) 0xff);
                emit(n + "zeros behind " + more, "", fix(cat(b, new byte[more])));
                emit(n + "ones behind " + more, "", fix(cat(b, ones)));
            }
            emit(n + "twice", "", fix(cat(b, Arrays.copyOfRange(b, 61, b.length))));
            byte[] noise = Arrays.copyOf(b, 61 + 50);
            new Random(1).nextBytes(noise);
            System.arraycopy(b, 0, noise, 0, 61);
            emit(n + "noise", "", fix(noise));
        }
        byte[] raw = org.xerial.snappy.Snappy.compress(good(0));
        byte[] b = around("snappy", 1, good(0));
        emit("payload/snappy/raw", "", fix(cat(Arrays.copyOf(b, 61), raw)));
    }

    static void flips() throws Exception {
        for (String codec : CODECS) {
            byte[] b = plain(codec);
            for (int i = 61; i < b.length; i++)
                for (int mask : new int[] {0x01, 0x80}) {
                    byte[] c = b.clone();
                    c[i] ^= (byte) mask;
                    emit("flip/" + codec + "/" + i + " " + mask, "", crc(c));
                }
        }
    }

    static void configs() throws Exception {
        String[] configs = {
            "cleanup.policy=compact", "cleanup.policy=compact,delete", "message.timestamp.type=LogAppendTime",
            "message.timestamp.before.max.ms=1000", "message.timestamp.after.max.ms=1000",
            "message.timestamp.before.max.ms=1000 cleanup.policy=compact",
            "compression.type=uncompressed", "compression.type=gzip", "compression.type=snappy", "compression.type=lz4", "compression.type=zstd",
            "compression.type=gzip message.timestamp.type=LogAppendTime", "compression.type=lz4 cleanup.policy=compact",
        };
        for (String config : configs)
            for (String codec : CODECS) {
                String n = "config/" + codec + "/";
                emit(n + "plain", config, plain(codec));
                emit(n + "keyed", config, batch(codec, 9, (short) 2, 7, true, rec(NOW - 1, "a", "1"), rec(NOW - 2, "b", "2"), rec(NOW - 1, "c", null)));
                emit(n + "old and new", config, batch(codec, -1, (short) -1, -1, false, rec(NOW - 1000, "a", "1"), rec(NOW - 1001, "b", "2"), rec(NOW + 1000, "c", null),
                    rec(NOW + 1001, "d", ""), rec(5, null, "")));
                emit(n + "nothing but null keys", config, batch(codec, -1, (short) -1, -1, false, rec(NOW, null, "1"), rec(NOW, null, "2"), rec(NOW, null, "3"), rec(NOW, null, "4")));
                emit(n + "no timestamps", config, batch(codec, -1, (short) -1, -1, false, rec(-1, "a", "1"), rec(-1, "b", "2")));
                byte[] b = plain(codec);
                b[22] |= 8;
                emit(n + "append time by the client", config, crc(b));
                b = plain(codec);
                ByteBuffer.wrap(b).putLong(35, -1).put(22, (byte) (b[22] | 8));
                emit(n + "append time -1 by the client", config, crc(b));
                b = plain(codec);
                ByteBuffer.wrap(b).putLong(35, 77);
                emit(n + "wrong maximum", config, crc(b));
                emit(n + "deltas 0 0", config, around(codec, 2, good(0), good(0)));
                b = around(codec, 2, good(0), good(1));
                ByteBuffer.wrap(b).putLong(27, NOW - 500);
                emit(n + "base timestamp not the first", config, crc(b));
            }
    }

    // For a comparison that is not kept: mutations at random.
    static void random(int n) throws Exception {
        Random r = new Random(n);
        String[] configs = {"", "", "", "cleanup.policy=compact", "message.timestamp.type=LogAppendTime", "message.timestamp.before.max.ms=1000", "compression.type=lz4"};
        for (int i = 0; i < n; i++) {
            String codec = CODECS[r.nextInt(5)];
            byte[] b;
            if (r.nextBoolean()) b = plain(codec);
            else { // records broken before compression
                byte[] records = cat(good(0), good(1), body(raw(0), v(3), v(2), v(-1), v(-1), v(2), v(1), raw('h'), v(1), raw('v'), v(0), v(-1)));
                for (int k = r.nextInt(3); k >= 0; k--) records[r.nextInt(records.length)] = (byte) (r.nextBoolean() ? r.nextInt(256) : r.nextInt(12));
                b = around(codec, 3, records);
            }
            int where = r.nextInt(4);
            if (where > 0) {
                int at = where == 1 ? 21 + r.nextInt(40) : 61 + r.nextInt(b.length - 61);
                if (r.nextBoolean()) b[at] ^= (byte) (1 << r.nextInt(8)); else b[at] = (byte) r.nextInt(256);
            }
            emit("random/" + codec + "/" + i, configs[r.nextInt(configs.length)], crc(b));
        }
    }
}
