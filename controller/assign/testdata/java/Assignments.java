import java.util.*;
import java.util.stream.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/** Prints random stories of groups, and what Apache Kafka's assignors make of each step. */
public class Assignments {
    static class M { String id, instance; TreeSet<Integer> topics = new TreeSet<>(); TreeMap<Integer, TreeSet<Integer>> owned = new TreeMap<>(); }
    static Random random;
    static TreeMap<String, M> members;
    static TreeMap<Integer, Integer> topics; // partitions by number
    static int next;

    static Uuid id(int topic) { return new Uuid(0, topic); }

    static void join(boolean uneven) {
        M m = new M();
        m.id = String.format("m%03d", random.nextInt(900) + 100);
        if (members.containsKey(m.id)) return;
        if (random.nextInt(3) == 0) m.instance = "i" + (char) ('a' + next++ % 26) + next;
        subscribe(m, uneven);
        members.put(m.id, m);
    }

    static void subscribe(M m, boolean uneven) {
        m.topics.clear();
        for (int t : topics.keySet()) if (!uneven || random.nextInt(3) > 0) m.topics.add(t);
    }

    static void assign(String name) {
        Set<Integer> all = new TreeSet<>();
        members.values().forEach(m -> all.addAll(m.topics));
        boolean even = members.values().stream().allMatch(m -> m.topics.equals(all));
        List<String> order = new ArrayList<>(members.keySet());
        Set<String> taken = new HashSet<>();
        members.values().forEach(m -> m.owned.forEach((t, ps) -> ps.forEach(p -> taken.add(t + ":" + p))));
        GroupSpec spec = new GroupSpec() {
            public Collection<String> memberIds() { return order; }
            public SubscriptionType subscriptionType() { return even ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS; }
            public boolean isPartitionAssigned(Uuid t, int p) { return taken.contains(t.getLeastSignificantBits() + ":" + p); }
            public boolean isPartitionAssignable(Uuid t, int p) { return true; }
            public MemberSubscription memberSubscription(String id) {
                M m = members.get(id);
                return new MemberSubscription() {
                    public Optional<String> rackId() { return Optional.empty(); }
                    public Optional<String> instanceId() { return Optional.ofNullable(m.instance); }
                    public Set<Uuid> subscribedTopicIds() { return m.topics.stream().map(Assignments::id).collect(Collectors.toCollection(LinkedHashSet::new)); }
                };
            }
            public MemberAssignment memberAssignment(String id) {
                Map<Uuid, Set<Integer>> owned = new LinkedHashMap<>();
                members.get(id).owned.forEach((t, ps) -> owned.put(id(t), ps));
                Map<Uuid, Set<Integer>> fixed = Collections.unmodifiableMap(owned);
                return () -> fixed;
            }
        };
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid t) { return topics.getOrDefault((int) t.getLeastSignificantBits(), -1); }
            public Set<String> racksForPartition(Uuid t, int p) { return Set.of(); }
        };
        System.out.println(name);
        topics.forEach((t, n) -> System.out.println("topic " + t + " " + n));
        members.values().forEach(m -> System.out.println("member " + m.id + " " + (m.instance == null ? "-" : m.instance) + " "
            + (m.topics.isEmpty() ? "-" : m.topics.stream().map(String::valueOf).collect(Collectors.joining(","))) + " " + text(m.owned)));
        ConsumerGroupPartitionAssignor assignor = name.equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<String, MemberAssignment> result = assignor.assign(spec, describer).members();
        for (M m : members.values()) {
            TreeMap<Integer, TreeSet<Integer>> now = new TreeMap<>();
            if (result.containsKey(m.id))
                result.get(m.id).partitions().forEach((t, ps) -> { if (!ps.isEmpty()) now.put((int) t.getLeastSignificantBits(), new TreeSet<>(ps)); });
            m.owned = now;
            System.out.println("gets " + m.id + " " + text(now));
        }
        System.out.println();
    }

    static String text(TreeMap<Integer, TreeSet<Integer>> owned) {
        if (owned.isEmpty()) return "-";
        return owned.entrySet().stream().map(e -> e.getKey() + ":" + e.getValue().stream().map(String::valueOf).collect(Collectors.joining(","))).collect(Collectors.joining(";"));
    }

    public static void main(String[] args) {
        for (int seed = 0; seed < 90; seed++) {
            random = new Random(seed);
            members = new TreeMap<>();
            topics = new TreeMap<>();
            next = 0;
            String name = seed % 3 == 0 ? "range" : "uniform";
            boolean uneven = seed % 2 == 1;
            int count = 1 + random.nextInt(4), same = 1 + random.nextInt(9);
            for (int t = 1; t <= count; t++) topics.put(t, random.nextBoolean() ? same : 1 + random.nextInt(12));
            int first = 1 + random.nextInt(6);
            for (int i = 0; i < first; i++) join(uneven);
            assign(name);
            for (int step = 0; step < 4; step++) {
                List<String> ids = new ArrayList<>(members.keySet());
                M some = members.get(ids.get(random.nextInt(ids.size())));
                switch (random.nextInt(6)) {
                    case 0: case 1: join(uneven); break;
                    case 2: if (members.size() > 1) members.remove(some.id); break;
                    case 3: topics.compute(1 + random.nextInt(count), (t, n) -> n == null ? null : n + 1 + random.nextInt(4)); break;
                    case 4: if (uneven) subscribe(some, true); else join(false); break;
                    default:
                        if (topics.size() > 1) {
                            int gone = topics.firstKey();
                            topics.remove(gone);
                            members.values().forEach(m -> m.topics.remove(gone));
                        }
                        // What members own of it stays in their targets until the next assignment, as in a group.
                        if (uneven) members.values().forEach(m -> m.owned.keySet().retainAll(topics.keySet()));
                }
                assign(name);
            }
        }
    }
}
