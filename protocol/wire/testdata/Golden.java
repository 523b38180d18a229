import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.message.FetchResponseData.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.record.internal.MemoryRecords;

/** Prints what fetch.golden and headers.golden hold; see README.md. */
public class Golden {
    static byte[] bytes(int n) {
        byte[] b = new byte[n];
        for (int i = 0; i < n; i++) b[i] = (byte) (i * 7);
        return b;
    }

    static FetchResponseData fetch(short v, String variant) {
        FetchResponseData d = new FetchResponseData().setThrottleTimeMs(17);
        if (v >= 7) d.setSessionId(123456789).setErrorCode((short) 71);
        if (variant.equals("empty")) return d;
        PartitionData plain = new PartitionData().setPartitionIndex(3).setHighWatermark(100).setLastStableOffset(90)
            .setLogStartOffset(5).setRecords(MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(300))))
            .setAbortedTransactions(List.of(
                new AbortedTransaction().setProducerId(7).setFirstOffset(50), new AbortedTransaction().setProducerId(8).setFirstOffset(60)));
        PartitionData failed = new PartitionData().setPartitionIndex(4).setErrorCode((short) 6).setHighWatermark(-1)
            .setLastStableOffset(-1).setLogStartOffset(-1).setRecords(MemoryRecords.EMPTY).setAbortedTransactions(null);
        if (v >= 11) plain.setPreferredReadReplica(2);
        if (v >= 12) {
            failed.setCurrentLeader(new LeaderIdAndEpoch().setLeaderId(9).setLeaderEpoch(33));
            failed.setDivergingEpoch(new EpochEndOffset().setEpoch(4).setEndOffset(1L << 40));
            plain.setSnapshotId(new SnapshotId().setEndOffset(77).setEpoch(6));
        }
        FetchableTopicResponse topic = new FetchableTopicResponse().setPartitions(List.of(plain, failed));
        if (v >= 13) topic.setTopicId(Uuid.fromString("AAECAwQFBgcICQoLDA0ODw")); else topic.setTopic("orders");
        FetchableTopicResponse second = new FetchableTopicResponse().setPartitions(List.of(new PartitionData()
            .setPartitionIndex(0).setHighWatermark(1).setLastStableOffset(1).setLogStartOffset(0)
            .setRecords(MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(4500)))).setAbortedTransactions(List.of())));
        if (v >= 13) second.setTopicId(Uuid.METADATA_TOPIC_ID); else second.setTopic("x");
        d.setResponses(List.of(topic, second));
        if (v >= 16) {
            NodeEndpointCollection nodes = new NodeEndpointCollection();
            nodes.add(new NodeEndpoint().setNodeId(9).setHost("broker-9").setPort(9092).setRack("r1"));
            nodes.add(new NodeEndpoint().setNodeId(10).setHost("broker-10").setPort(9093).setRack(null));
            d.setNodeEndpoints(nodes);
        }
        return d;
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("headers")) {
            for (ApiKeys k : ApiKeys.values())
                for (short v = k.messageType.lowestSupportedVersion(); v <= k.messageType.highestSupportedVersion(true); v++)
                    System.out.println(k.id + " " + v + " " + k.requestHeaderVersion(v) + " " + k.responseHeaderVersion(v));
            return;
        }
        for (short v = 4; v <= 18; v++)
            for (String variant : new String[] {"empty", "full"}) {
                FetchResponseData d = fetch(v, variant);
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer b = ByteBuffer.allocate(d.size(cache, v));
                d.write(new ByteBufferAccessor(b), cache, v);
                System.out.println(v + " " + variant + " " + HexFormat.of().formatHex(b.array()));
            }
    }
}
