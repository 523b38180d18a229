// Writes and reads record batches with Apache Kafka 4.4.0; see README.md.
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.internals.*;

public class Batches {
    static final long NOW = 1_700_000_000_000L;
    static PrintWriter out;

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
    static String hex(ByteBuffer b) { return b == null ? "-" : HexFormat.of().formatHex(bytes(b)); }
    static String hex(byte[] b) { return b == null ? "-" : HexFormat.of().formatHex(b); }

    static SimpleRecord rec(long ts, String key, String value, Header... headers) {
        return new SimpleRecord(ts, key == null ? null : key.getBytes(), value == null ? null : value.getBytes(), headers);
    }

    // The same text as dump in golden_test.go.
    static String dump(DefaultRecordBatch b) {
        StringBuilder s = new StringBuilder();
        s.append("base=" + b.baseOffset() + " last=" + b.lastOffset() + " next=" + b.nextOffset() + " size=" + b.sizeInBytes()
            + " epoch=" + b.partitionLeaderEpoch() + " magic=" + b.magic() + " crc=" + b.checksum() + " valid=" + b.isValid()
            + " codec=" + b.compressionType().name + " time=" + b.timestampType().name + " txn=" + b.isTransactional()
            + " control=" + b.isControlBatch() + " horizon=" + b.deleteHorizonMs().isPresent()
            + " baseTimestamp=" + b.baseTimestamp() + " maxTimestamp=" + b.maxTimestamp() + " pid=" + b.producerId()
            + " pepoch=" + b.producerEpoch() + " seq=" + b.baseSequence() + ".." + b.lastSequence() + " count=" + b.countOrNull());
        for (org.apache.kafka.common.record.internal.Record r : b) {
            s.append(" | " + r.offset() + " " + r.timestamp() + " " + hex(r.key()) + " " + hex(r.value()));
            for (Header h : r.headers()) s.append(" " + hex(h.key().getBytes()) + "=" + hex(h.value()));
        }
        return s.toString();
    }

    static void emit(String name, MemoryRecords records) { emit(name, records.buffer()); }

    static void emit(String name, ByteBuffer buffer) {
        byte[] b = bytes(buffer);
        DefaultRecordBatch batch = (DefaultRecordBatch) MemoryRecords.readableRecords(ByteBuffer.wrap(b)).batches().iterator().next();
        out.println(name + "\t" + Base64.getEncoder().encodeToString(b) + "\t" + dump(batch));
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) { write(args[1]); control(args[2]); } else read(Paths.get(args[1]));
    }

    static void write(String file) throws Exception {
        out = new PrintWriter(file);
        Header[] headers = {new RecordHeader("trace", "42".getBytes()), new RecordHeader("", null), new RecordHeader("grüße", new byte[0])};
        for (String c : new String[] {"none", "gzip", "snappy", "lz4", "zstd"}) {
            Compression z = codec(c);
            emit(c + "/one", MemoryRecords.withRecords(z, rec(NOW, "key", "value")));
            emit(c + "/nulls and headers", MemoryRecords.withRecords(z, rec(NOW, null, "value", headers), rec(NOW - 1000, "key", null), rec(NOW + 5, "", "", headers), rec(0, null, null)));
            emit(c + "/offsets", MemoryRecords.withRecords(Long.MAX_VALUE - 10, z, 17, rec(NOW, "a", "b"), rec(NOW, "c", "d"), rec(NOW, "e", "f")));
            emit(c + "/idempotent", MemoryRecords.withIdempotentRecords(40, z, 1L << 40, (short) 9, Integer.MAX_VALUE - 1, 3, rec(NOW, "a", "b"), rec(NOW, "c", "d"), rec(NOW, "e", "f")));
            emit(c + "/transactional", MemoryRecords.withTransactionalRecords(z, 77, (short) 0, 0, rec(NOW, "a", "b"), rec(NOW, "c", "d")));
            emit(c + "/no timestamp", MemoryRecords.withRecords(z, rec(-1, "a", "b")));
            emit(c + "/far timestamps", MemoryRecords.withRecords(z, rec(Long.MAX_VALUE, "a", "b"), rec(0, "c", "d")));
            SimpleRecord[] many = new SimpleRecord[300];
            for (int i = 0; i < many.length; i++) many[i] = rec(NOW + i * 7 % 13, "key" + i % 50, "the value of record number " + i);
            emit(c + "/many", MemoryRecords.withRecords(100, z, many));
            ByteBuffer b = ByteBuffer.allocate(1024);
            MemoryRecordsBuilder m = MemoryRecords.builder(b, (byte) 2, z, TimestampType.LOG_APPEND_TIME, 5, NOW + 99, 12);
            m.append(NOW, "a".getBytes(), "b".getBytes());
            m.append(NOW + 1, "c".getBytes(), null);
            emit(c + "/append time", m.build());
            b = ByteBuffer.allocate(1024);
            m = new MemoryRecordsBuilder(new ByteBufferOutputStream(b), (byte) 2, z, TimestampType.CREATE_TIME, 1000, -1, 8, (short) 1, 4, true, false, 2, 1024, NOW + 5000);
            m.appendWithOffset(1003, rec(NOW, "k", null));
            m.appendWithOffset(1009, rec(NOW + 1, "l", null));
            emit(c + "/gaps and delete horizon", m.build());
        }
        ByteBuffer b = ByteBuffer.allocate(61);
        DefaultRecordBatch.writeEmptyHeader(b, (byte) 2, 5, (short) 2, 11, 30, 39, 4, TimestampType.CREATE_TIME, NOW, true, false);
        b.flip();
        emit("empty", b);
        for (ControlRecordType t : new ControlRecordType[] {ControlRecordType.ABORT, ControlRecordType.COMMIT})
            emit("marker " + t, MemoryRecords.withEndTransactionMarker(0, NOW, -1, 4242, (short) 7, new EndTransactionMarker(t, 13)));
        emit("leader change", MemoryRecords.withLeaderChangeMessage(0, NOW, 5, ByteBuffer.allocate(256), leaderChange()));
        emit("snapshot header", MemoryRecords.withSnapshotHeaderRecord(0, NOW, 5, ByteBuffer.allocate(256), new SnapshotHeaderRecord().setVersion((short) 0).setLastContainedLogTimestamp(NOW)));
        emit("snapshot footer", MemoryRecords.withSnapshotFooterRecord(9, NOW, 5, ByteBuffer.allocate(256), new SnapshotFooterRecord().setVersion((short) 0)));
        emit("kraft version", MemoryRecords.withKRaftVersionRecord(1, NOW, 5, ByteBuffer.allocate(256), new KRaftVersionRecord().setVersion((short) 0).setKRaftVersion((short) 1)));
        emit("voters", MemoryRecords.withVotersRecord(2, NOW, 5, ByteBuffer.allocate(1024), voters()));
        out.close();
    }

    static LeaderChangeMessage leaderChange() {
        return new LeaderChangeMessage().setVersion((short) 1).setLeaderId(2)
            .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(2), new LeaderChangeMessage.Voter().setVoterId(3)))
            .setGrantingVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(2), new LeaderChangeMessage.Voter().setVoterId(3)));
    }

    static VotersRecord.Voter voter(int id, Uuid dir, int min, int max, Object... endpoints) {
        VotersRecord.EndpointCollection c = new VotersRecord.EndpointCollection();
        for (int i = 0; i < endpoints.length; i += 3) c.add(new VotersRecord.Endpoint().setName((String) endpoints[i]).setHost((String) endpoints[i + 1]).setPort((Integer) endpoints[i + 2]));
        return new VotersRecord.Voter().setVoterId(id).setVoterDirectoryId(dir).setEndpoints(c)
            .setKRaftVersionFeature(new VotersRecord.KRaftVersionFeature().setMinSupportedVersion((short) min).setMaxSupportedVersion((short) max));
    }

    static VotersRecord voters() {
        return new VotersRecord().setVersion((short) 0).setVoters(List.of(
            voter(1, new Uuid(1, 2), 0, 1, "CONTROLLER", "controller-1.example", 9093),
            voter(2, new Uuid(-1, Long.MIN_VALUE), 0, 1, "CONTROLLER", "::1", 65535, "OTHER", "", 0),
            voter(Integer.MAX_VALUE, Uuid.ZERO_UUID, 1, 2)));
    }

    static void control(String file) throws Exception {
        out = new PrintWriter(file);
        one("leader change", leaderChange(), ControlRecordType.LEADER_CHANGE);
        one("leader change, nobody", new LeaderChangeMessage().setLeaderId(-1), ControlRecordType.LEADER_CHANGE);
        List<LeaderChangeMessage.Voter> many = new ArrayList<>();
        for (int i = 0; i < 200; i++) many.add(new LeaderChangeMessage.Voter().setVoterId(i * 1_000_003));
        one("leader change, 200 voters", new LeaderChangeMessage().setLeaderId(7).setVoters(many), ControlRecordType.LEADER_CHANGE);
        one("snapshot header", new SnapshotHeaderRecord().setLastContainedLogTimestamp(NOW), ControlRecordType.SNAPSHOT_HEADER);
        one("snapshot header, 3 -1", new SnapshotHeaderRecord().setVersion((short) 3).setLastContainedLogTimestamp(-1), ControlRecordType.SNAPSHOT_HEADER);
        one("snapshot footer", new SnapshotFooterRecord(), ControlRecordType.SNAPSHOT_FOOTER);
        one("snapshot footer, 9", new SnapshotFooterRecord().setVersion((short) 9), ControlRecordType.SNAPSHOT_FOOTER);
        one("kraft version", new KRaftVersionRecord().setKRaftVersion((short) 1), ControlRecordType.KRAFT_VERSION);
        one("kraft version, 2 -5", new KRaftVersionRecord().setVersion((short) 2).setKRaftVersion((short) -5), ControlRecordType.KRAFT_VERSION);
        one("voters", voters(), ControlRecordType.KRAFT_VOTERS);
        one("voters, none", new VotersRecord(), ControlRecordType.KRAFT_VOTERS);
        for (int epoch : new int[] {0, 13, Integer.MAX_VALUE, -1})
            for (ControlRecordType t : new ControlRecordType[] {ControlRecordType.ABORT, ControlRecordType.COMMIT})
                out.println("marker " + t + " " + epoch + "\t" + hex(t.recordKey()) + "\t" + hex(new EndTransactionMarker(t, epoch).serializeValue()));
        out.close();
    }

    static void one(String name, org.apache.kafka.common.protocol.Message m, ControlRecordType t) {
        out.println(name + "\t" + hex(t.recordKey()) + "\t" + hex(org.apache.kafka.common.protocol.MessageUtil.toByteBufferAccessor(m, (short) 0).buffer()));
    }

    static void read(Path file) throws Exception {
        int good = 0, bad = 0;
        for (String line : Files.readAllLines(file)) {
            String[] f = line.split("\t");
            String got;
            try {
                MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(f[1])));
                Iterator<MutableRecordBatch> it = records.batches().iterator();
                DefaultRecordBatch b = (DefaultRecordBatch) it.next();
                b.ensureValid();
                got = it.hasNext() ? "two batches" : dump(b);
            } catch (Throwable t) { got = t.toString(); }
            if (got.equals(f[2])) good++;
            else { bad++; System.out.println(f[0] + "\n  Java  " + got + "\n  Ottla " + f[2]); }
        }
        System.out.println("read " + good + " alike, " + bad + " not");
    }
}
