import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.common.runtime.*;
public class TopicHash {
  record T(String name, Uuid id, List<List<String>> racks) implements CoordinatorMetadataImage.TopicMetadata {
    public int partitionCount() { return racks.size(); }
    public List<String> partitionRacks(int p) { return new ArrayList<>(racks.get(p)); }
  }
  static CoordinatorMetadataImage image(T t) {
    return (CoordinatorMetadataImage) java.lang.reflect.Proxy.newProxyInstance(TopicHash.class.getClassLoader(), new Class[]{CoordinatorMetadataImage.class}, (p, m, a) -> Optional.of(t));
  }
  public static void main(String[] x) throws Exception {
    List<T> topics = new ArrayList<>();
    topics.add(new T("t", new Uuid(0x0102030405060708L, 0x090a0b0c0d0e0f10L), List.of(List.of())));
    topics.add(new T("orders.eu-west_1", new Uuid(0xf1f2f3f4f5f6f7f8L, 0x8081828384858687L), List.of(List.of("b", "a"), List.of("a"), List.of("rack-\u00e9\ud83d\ude00", "a"))));
    List<List<String>> many = new ArrayList<>();
    for (int i = 0; i < 1000; i++) many.add(List.of("r" + i % 3, "r" + (i + 1) % 3));
    topics.add(new T("many", new Uuid(7, 9), many));
    Map<String, Long> all = new HashMap<>();
    for (T t : topics) {
      long h = Utils.computeTopicHash(t.name, image(t));
      all.put(t.name, h);
      System.out.println(t.name + " " + h + " " + Utils.computeGroupHash(all));
    }
  }
}
