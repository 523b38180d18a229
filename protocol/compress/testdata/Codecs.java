// Writes and judges compressed data with Apache Kafka's own codecs; see README.md.
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.zip.CRC32;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.internals.*;

public class Codecs {
    static final byte MAGIC = 2;

    // The inputs, made alike in codec_test.go.
    static byte[] input(String name) {
        byte[] b;
        switch (name) {
            case "empty": return new byte[0];
            case "one": return new byte[] {'x'};
            case "zeros": return new byte[200_000];
            case "text": {
                StringBuilder s = new StringBuilder();
                for (int i = 0; s.length() < 70_000; i++) s.append("line ").append(i * 7919 % 1000).append(" of the log\n");
                return s.toString().getBytes();
            }
            case "noise": {
                b = new byte[3000];
                int x = 12345;
                for (int i = 0; i < b.length; i++) { x = x * 1103515245 + 12345; b[i] = (byte) (x >>> 16); }
                return b;
            }
        }
        throw new IllegalArgumentException(name);
    }

    static Compression codec(String name, int level) {
        switch (name) {
            case "gzip": return level == 0 ? Compression.gzip().build() : Compression.gzip().level(level).build();
            case "snappy": return Compression.snappy().build();
            case "lz4": return level == 0 ? Compression.lz4().build() : Compression.lz4().level(level).build();
            case "zstd": return level == 0 ? Compression.zstd().build() : Compression.zstd().level(level).build();
        }
        throw new IllegalArgumentException(name);
    }

    static byte[] compress(Compression c, byte[] data) throws IOException {
        ByteBufferOutputStream out = new ByteBufferOutputStream(512);
        try (OutputStream w = c.wrapForOutput(out, MAGIC)) { w.write(data); }
        ByteBuffer b = out.buffer();
        b.flip();
        byte[] r = new byte[b.remaining()];
        b.get(r);
        return r;
    }

    static String verdict(Compression c, byte[] data) {
        ByteArrayOutputStream got = new ByteArrayOutputStream();
        try (InputStream in = c.wrapForInput(ByteBuffer.wrap(data), MAGIC, BufferSupplier.NO_CACHING)) {
            byte[] buf = new byte[4096];
            for (int n; (n = in.read(buf)) >= 0; ) got.write(buf, 0, n);
        } catch (Throwable t) {
            return "refused\t0\t0";
        }
        CRC32 crc = new CRC32();
        crc.update(got.toByteArray());
        return "ok\t" + got.size() + "\t" + crc.getValue();
    }

    static String b64(byte[] b) { return Base64.getEncoder().encodeToString(b); }

    static byte[] cat(byte[]... parts) throws IOException {
        ByteArrayOutputStream o = new ByteArrayOutputStream();
        for (byte[] p : parts) o.write(p);
        return o.toByteArray();
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) write(Paths.get(args[1]));
        else read(Paths.get(args[1]));
    }

    static void write(Path dir) throws Exception {
        int[][] levels = {{0, 1, 9}, {0}, {0, 1, 17}, {0, 1, 22, -5}};
        String[] names = {"gzip", "snappy", "lz4", "zstd"};
        try (PrintWriter w = new PrintWriter(dir.resolve("java-written.tsv").toFile())) {
            for (int i = 0; i < 4; i++)
                for (int level : levels[i])
                    for (String in : new String[] {"empty", "one", "zeros", "text", "noise"})
                        w.println(names[i] + "\t" + level + "\t" + in + "\t" + b64(compress(codec(names[i], level), input(in))));
        }
        try (PrintWriter w = new PrintWriter(dir.resolve("java-verdicts.tsv").toFile())) {
            for (String name : names) {
                Compression c = codec(name, 0);
                byte[] small = "a small text, a small text, and the end".getBytes();
                byte[] good = compress(c, small);
                List<byte[]> cases = new ArrayList<>();
                cases.add(good);
                for (int n = 0; n < good.length; n++) cases.add(Arrays.copyOf(good, n));
                for (int n = 0; n < good.length; n++)
                    for (int mask : new int[] {0x01, 0x80, 0xff}) {
                        byte[] bad = good.clone();
                        bad[n] ^= (byte) mask;
                        cases.add(bad);
                    }
                cases.add(cat(good, good));
                cases.add(cat(good, good, good));
                for (int n : new int[] {1, 2, 3, 4, 5, 8, 17, 18, 19, 30}) {
                    byte[] zeros = new byte[n], ones = new byte[n];
                    Arrays.fill(ones, (byte) 0xff);
                    cases.add(cat(good, zeros));
                    cases.add(cat(good, ones));
                }
                for (int n = 1; n < good.length; n++) cases.add(cat(good, Arrays.copyOf(good, n)));
                byte[] empty = compress(c, new byte[0]);
                cases.add(cat(empty, good));
                cases.add(cat(good, empty, good));
                if (name.equals("snappy")) {
                    byte[] raw = org.xerial.snappy.Snappy.compress(small);
                    cases.add(raw);
                    for (int n = 0; n < raw.length; n++) cases.add(Arrays.copyOf(raw, n));
                    cases.add(cat(raw, new byte[] {0}));
                    cases.add(org.xerial.snappy.Snappy.compress(input("text")));
                }
                if (name.equals("gzip")) {
                    // name, comment, extra, header checksum flags
                    byte[] named = cat(new byte[] {0x1f, (byte) 0x8b, 8, 0x18, 0, 0, 0, 0, 0, 3, 'n', 'a', 0, 'c', 0}, Arrays.copyOfRange(good, 10, good.length));
                    cases.add(named);
                    cases.add(cat(new byte[] {0x1f, (byte) 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 2, 0, 'x', 'y'}, Arrays.copyOfRange(good, 10, good.length)));
                    cases.add(cat(new byte[] {0x1f, (byte) 0x8b, 8, 2, 0, 0, 0, 0, 0, 3, 0, 0}, Arrays.copyOfRange(good, 10, good.length)));
                }
                if (name.equals("zstd")) {
                    byte[] skip = {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
                    cases.add(cat(skip, good));
                    cases.add(cat(good, skip));
                    cases.add(skip);
                }
                for (byte[] data : cases) w.println(name + "\t" + b64(data) + "\t" + verdict(c, data));
            }
        }
    }

    // Reads what Ottla wrote and compares with the inputs.
    static void read(Path file) throws Exception {
        int good = 0;
        for (String line : Files.readAllLines(file)) {
            String[] f = line.split("\t");
            byte[] want = input(f[2]);
            byte[] data = f.length > 3 ? Base64.getDecoder().decode(f[3]) : new byte[0];
            try (InputStream in = codec(f[0], 0).wrapForInput(ByteBuffer.wrap(data), MAGIC, BufferSupplier.NO_CACHING)) {
                ByteArrayOutputStream got = new ByteArrayOutputStream();
                byte[] buf = new byte[4096];
                for (int n; (n = in.read(buf)) >= 0; ) got.write(buf, 0, n);
                if (!Arrays.equals(got.toByteArray(), want)) throw new IOException("other bytes");
                good++;
            } catch (Throwable t) {
                System.out.println(f[0] + " level " + f[1] + " " + f[2] + ": " + t);
            }
        }
        System.out.println("read " + good);
    }
}
