package org.apache.kafka.server;

import java.nio.ByteBuffer;
import java.util.*;
import java.util.function.Supplier;
import org.apache.kafka.common.*;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.FetchSession.FetchSessionCache;

/** Drives Apache Kafka's FetchManager at random and prints what it was asked and what it decided; see README.md. */
public class Sessions {
    static long nowMs = 1_000_000;
    static final Time TIME = (Time) java.lang.reflect.Proxy.newProxyInstance(Sessions.class.getClassLoader(), new Class<?>[] {Time.class},
        (proxy, method, args) -> method.getName().equals("milliseconds") ? (Object) nowMs : null);

    static final String[] TOPICS = {"a", "b", "c"};
    static final Map<String, Uuid> IDS = Map.of("a", new Uuid(1, 1), "b", new Uuid(2, 2), "c", new Uuid(3, 3));

    record Held(int number, FetchContext context, int version) {}

    static String name(TopicIdPartition p) {
        String topic = p.topic();
        for (String t : TOPICS) if (IDS.get(t).equals(p.topicId())) return t + (topic == null ? "?" : "") + ":" + p.partition();
        return topic + ":" + p.partition();
    }

    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[0]));
        int slots = Integer.parseInt(args[1]), steps = Integer.parseInt(args[2]);
        FetchSessionCacheShard shard = new FetchSessionCacheShard(slots, 1000, Integer.MAX_VALUE, 0);
        FetchManager manager = new FetchManager(TIME, new FetchSessionCache(List.of(shard)));
        System.out.println("cache slots=" + slots + " eviction=1000");
        Map<Integer, int[]> sessions = new LinkedHashMap<>(); // id -> next epoch, version
        List<Held> held = new ArrayList<>();
        int contexts = 0;
        for (int step = 0; step < steps; step++) {
            nowMs += random.nextInt(4) == 0 ? random.nextInt(1500) : random.nextInt(20);
            Map<Uuid, String> names = new HashMap<>();
            for (String t : TOPICS) if (!t.equals("c") || step > steps / 2) names.put(IDS.get(t), t);
            int session = 0, epoch = 0, version = random.nextBoolean() ? 12 : 16;
            List<Integer> ids = new ArrayList<>(sessions.keySet());
            int kind = random.nextInt(20);
            if (!ids.isEmpty() && kind > 3) {
                session = ids.get(random.nextInt(ids.size()));
                int[] s = sessions.get(session);
                epoch = s[0];
                version = s[1];
                if (kind == 4) epoch = -1;
                if (kind == 5) epoch = 0;
                if (kind == 6) epoch += random.nextInt(5) - 2;
                if (kind == 7) version = version == 12 ? 16 : 12;
                if (kind == 8) session = 12345;
            }
            Map<TopicIdPartition, FetchRequest.PartitionData> want = new LinkedHashMap<>();
            List<TopicIdPartition> forget = new ArrayList<>();
            for (int i = random.nextInt(epoch == 0 ? 8 : 3); i > 0; i--) {
                String t = TOPICS[random.nextInt(3)];
                TopicIdPartition p = version >= 13
                    ? new TopicIdPartition(IDS.get(t), random.nextInt(3), names.get(IDS.get(t))) : new TopicIdPartition(Uuid.ZERO_UUID, random.nextInt(3), t);
                if (!want.containsKey(p))
                    want.put(p, new FetchRequest.PartitionData(p.topicId(), random.nextInt(100), -1, 1000, Optional.empty(), Optional.empty()));
            }
            if (epoch > 0) for (int i = random.nextInt(3); i > 0; i--) {
                String t = TOPICS[random.nextInt(3)];
                forget.add(version >= 13 ? new TopicIdPartition(IDS.get(t), random.nextInt(3), names.get(IDS.get(t))) : new TopicIdPartition(Uuid.ZERO_UUID, random.nextInt(3), t));
            }
            boolean follower = random.nextInt(4) == 0;
            int number = contexts++;
            StringBuilder line = new StringBuilder("decide " + number + " now=" + nowMs + " version=" + version + " follower=" + follower
                + " session=" + session + " epoch=" + epoch + " names=" + names.size() + " want=");
            want.forEach((p, d) -> line.append(name(p).replace("?", "")).append(":").append(d.fetchOffset).append(","));
            line.append(" forget=");
            forget.forEach(p -> line.append(name(p).replace("?", "")).append(","));
            FetchContext context = manager.newContext((short) version, new FetchMetadata(session, epoch), follower, want, forget, names);
            if (context instanceof FetchContext.SessionErrorContext) {
                line.append(" -> error=").append(context.updateAndGenerateResponseData(new LinkedHashMap<>(), List.of()).data().errorCode());
            } else {
                line.append(" -> read=");
                context.foreachPartition((p, d) -> line.append(name(p)).append(":").append(d.fetchOffset).append(","));
                held.add(new Held(number, context, version));
            }
            System.out.println(line + " sessions=" + shard.size() + " partitions=" + shard.totalPartitions());
            if (epoch <= 0) sessions.remove(session);
            else if (sessions.containsKey(session) && context instanceof FetchContext.IncrementalFetchContext) sessions.get(session)[0]++;
            while (!held.isEmpty() && random.nextInt(5) > 0) update(held.remove(random.nextInt(held.size())), random, shard, sessions);
            if (sessions.size() > 3 * slots) sessions.remove(sessions.keySet().iterator().next());
        }
    }

    static void update(Held h, Random random, FetchSessionCacheShard shard, Map<Integer, int[]> sessions) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> results = new LinkedHashMap<>();
        StringBuilder line = new StringBuilder("update " + h.number + " now=" + nowMs + " results=");
        h.context.foreachPartition((p, d) -> {
            FetchResponseData.PartitionData r = new FetchResponseData.PartitionData().setPartitionIndex(p.partition())
                .setHighWatermark(10 + (random.nextInt(8) == 0 ? 1 : 0)).setLogStartOffset(random.nextInt(10) == 0 ? 1 : 0).setRecords(MemoryRecords.EMPTY);
            int records = random.nextInt(4) == 0 ? 5 : 0, preferred = random.nextInt(15) == 0 ? 2 : -1, diverging = random.nextInt(15) == 0 ? 4 : -1;
            int error = random.nextInt(12) == 0 ? 6 : 0;
            r.setRecords(MemoryRecords.readableRecords(ByteBuffer.allocate(records))).setPreferredReadReplica(preferred).setErrorCode((short) error);
            if (error != 0) r.setHighWatermark(-1);
            r.divergingEpoch().setEpoch(diverging);
            results.put(p, r);
            line.append(name(p)).append(":").append(r.highWatermark()).append(":").append(r.logStartOffset()).append(":").append(records)
                .append(":").append(preferred).append(":").append(error).append(":").append(diverging).append(",");
        });
        FetchResponseData reply = h.context.updateAndGenerateResponseData(results, List.of()).data();
        line.append(" -> error=").append(reply.errorCode()).append(" session=").append(reply.sessionId()).append(" reply=");
        for (FetchResponseData.FetchableTopicResponse t : reply.responses()) {
            String topic = t.topic();
            for (String n : TOPICS) if (IDS.get(n).equals(t.topicId())) topic = n;
            line.append(topic).append("[");
            t.partitions().forEach(p -> line.append(p.partitionIndex()).append(","));
            line.append("]");
        }
        System.out.println(line + " sessions=" + shard.size() + " partitions=" + shard.totalPartitions());
        if (reply.sessionId() != 0 && !sessions.containsKey(reply.sessionId()) && h.context instanceof FetchContext.FullFetchContext)
            sessions.put(reply.sessionId(), new int[] {1, h.version});
    }
}
