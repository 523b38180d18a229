import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Remote storage that is a folder of this machine (rsm.config.folder), a file for each part of a segment. */
public final class RemoteFiles implements RemoteStorageManager {
    private Path folder;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of((String) configs.get("folder"));
    }

    private Path file(RemoteLogSegmentMetadata segment, String part) {
        return folder.resolve(segment.remoteLogSegmentId().id() + "." + part);
    }

    @Override
    public Optional<RemoteLogSegmentMetadata.CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Files.createDirectories(folder);
            Files.copy(data.logSegment(), file(segment, "log"));
            Files.copy(data.offsetIndex(), file(segment, "OFFSET"));
            Files.copy(data.timeIndex(), file(segment, "TIMESTAMP"));
            Files.copy(data.producerSnapshotIndex(), file(segment, "PRODUCER_SNAPSHOT"));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), file(segment, "TRANSACTION"));
            }
            ByteBuffer epochs = data.leaderEpochIndex();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.duplicate().get(bytes);
            Files.write(file(segment, "LEADER_EPOCH"), bytes);
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
        return Optional.empty();
    }

    private InputStream open(Path file) throws RemoteStorageException {
        try {
            if (!Files.exists(file)) {
                throw new RemoteResourceNotFoundException(file.toString());
            }
            return Files.newInputStream(file);
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE - 1);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end) throws RemoteStorageException {
        try (InputStream in = open(file(segment, "log"))) {
            byte[] all = in.readAllBytes();
            return new ByteArrayInputStream(Arrays.copyOfRange(all, Math.min(start, all.length), Math.min(end + 1, all.length)));
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        return open(file(segment, type.name()));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        for (String part : new String[] {"log", "OFFSET", "TIMESTAMP", "PRODUCER_SNAPSHOT", "TRANSACTION", "LEADER_EPOCH"}) {
            try {
                Files.deleteIfExists(file(segment, part));
            } catch (IOException e) {
                throw new RemoteStorageException(e);
            }
        }
    }

    @Override
    public void close() { }
}
