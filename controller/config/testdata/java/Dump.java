import org.apache.kafka.common.config.*;
import java.util.*;
public class Dump {
  static String s(Object o){ if(o==null) return "\\N"; String t=o.toString(); return t.replace("\n","\\n").replace("\t","\\t"); }
  static void dump(String scope, ConfigDef d, Map<String,String> modes){
    for (String n : new TreeSet<>(d.configKeys().keySet())) { ConfigDef.ConfigKey k=d.configKeys().get(n);
      String def = k.hasDefault() ? (k.defaultValue==null? "\\N" : s(ConfigDef.convertToString(k.defaultValue,k.type))) : "\\R";
      String v; try { v=k.validator==null?"":s(k.validator)+" "+k.validator.getClass().getSimpleName(); } catch(Exception e){ v=""+k.validator.getClass(); }
      System.out.println(scope+"\t"+n+"\t"+k.type+"\t"+def+"\t"+v+"\t"+k.importance+"\t"+(modes==null?"":modes.getOrDefault(n,"read-only"))+"\t"+k.internalConfig);
    }
  }
  public static void main(String[] a) throws Exception {
    ConfigDef bd = kafka.server.KafkaConfig.configDef();
    dump("broker", bd, org.apache.kafka.server.config.DynamicBrokerConfig.dynamicConfigUpdateModes());
    dump("topic", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy(), null);
    dump("group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF, null);
    dump("client-metrics", org.apache.kafka.server.metrics.ClientMetricsConfigs.configDef(), null);
    var syn = org.apache.kafka.server.config.ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS;
    for (var e : new TreeMap<>(syn).entrySet()) { StringBuilder b=new StringBuilder(); for (var c : e.getValue()) b.append(c.name()).append("/").append(c.converter().apply("36000")).append(" "); System.out.println("synonym\t"+e.getKey()+"\t"+b); }
    for (String n: new TreeSet<>(bd.names())) { var l=org.apache.kafka.server.config.DynamicBrokerConfig.brokerConfigSynonyms(n,true); if(l.size()>1) System.out.println("bsyn\t"+n+"\t"+l);}
    System.out.println("listenerscoped\t"+org.apache.kafka.server.config.DynamicBrokerConfig.brokerConfigSynonyms("listener.name.plaintext.ssl.keystore.location",true)+ org.apache.kafka.server.config.DynamicBrokerConfig.brokerConfigSynonyms("listener.name.plaintext.ssl.keystore.location",false));
    for (String n : org.apache.kafka.server.config.DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS) if(!bd.names().contains(n)) System.out.println("dyn-not-in-def "+n);
  }
}
