// Replays a directory's snapshots and metadata log with Kafka's own MetadataDelta
// and prints the image as records: one line each with the type, the version and
// the value in hex, sorted. See README.md for how it is run.

import java.io.File;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.image.*;
import org.apache.kafka.image.writer.*;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class Images {
    public static void main(String[] args) throws Exception {
        MetadataImage image = MetadataImage.EMPTY;
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        boolean inTransaction = false;
        for (String file : args) {
            try (FileRecords records = FileRecords.open(new File(file), false)) {
                for (RecordBatch batch : records.batches()) {
                    if (batch.isControlBatch()) continue;
                    for (org.apache.kafka.common.record.internal.Record record : batch) {
                        ByteBuffer value = record.value();
                        ApiMessageAndVersion message = new MetadataRecordSerde().read(new ByteBufferAccessor(value), value.remaining());
                        short key = message.message().apiKey();
                        if (key < 23 || key > 25) delta.replay(message.message());
                        else inTransaction = key == 23;
                    }
                    if (!inTransaction) { // as Kafka's loader publishes
                        image = delta.apply(MetadataProvenance.EMPTY);
                        delta = new MetadataDelta.Builder().setImage(image).build();
                    }
                }
            }
        }
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        List<String> lines = new ArrayList<>();
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            MetadataRecordSerde serde = new MetadataRecordSerde();
            ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(record, cache));
            serde.write(record, cache, new ByteBufferAccessor(buffer));
            lines.add(HexFormat.of().formatHex(buffer.array()));
        }
        Collections.sort(lines);
        lines.forEach(System.out::println);
    }
}
