import java.nio.file.*; import java.util.*; import java.util.stream.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.storage.internals.log.LogConfig;
// values: what KafkaConfig and LogConfig say to hostile values of every key, one at a time.
// rules FILE: what KafkaConfig makes of each set of properties in FILE (sets are divided by blank lines).
public class Verdicts {
  static String esc(String s){ return s.replace("\\","\\\\").replace("\n","\\n").replace("\t","\\t").replace("\r","\\r"); }
  static Properties base(){ Properties p=new Properties(); p.put("process.roles","broker,controller"); p.put("node.id","1"); p.put("controller.listener.names","CONTROLLER");
    p.put("listeners","PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"); p.put("controller.quorum.voters","1@localhost:9093"); return p; }
  static List<String> candidates(ConfigDef.ConfigKey k){ List<String> c=new ArrayList<>(List.of("","abc","true","1","-1"));
    switch (k.type) {
      case BOOLEAN: c.addAll(List.of("TRUE","false"," false ","yes","0")); break;
      case INT: case SHORT: case LONG: case DOUBLE: c.addAll(List.of("0","-2","-3"," 7 ","+5","1.5","0x10","1_000","1e3","NaN","32768","2147483647","2147483648","-2147483649","9223372036854775807","9223372036854775808")); break;
      default: c.addAll(List.of(" ","a,b","a,,b","a,a",",","a , b","delete","compact,delete","gzip","GZIP","none","PLAINTEXT","plaintext","CreateTime","LogAppendTime","upgrade","required")); }
    String v=k.validator==null?"":k.validator.toString(); var m=java.util.regex.Pattern.compile("-?\\d+").matcher(v); while(m.find()){ long x=Long.parseLong(m.group()); for(long d=-1;d<=1;d++) c.add(Long.toString(x+d)); }
    return c.stream().distinct().collect(Collectors.toList()); }
  static String message(Throwable e){ return e.getMessage()==null?e.toString():e.getMessage(); }
  public static void main(String[] a) throws Exception {
    if (a[0].equals("values")) {
      for (var k : new TreeMap<>(kafka.server.KafkaConfig.configDef().configKeys()).values()) { if (k.type==ConfigDef.Type.CLASS) continue;
        for (String c : candidates(k)) { Properties p=base(); p.put(k.name,c); String r; try { kafka.server.KafkaConfig.fromProps(p,false); r="ok"; } catch(Throwable e){ r="error"; } System.out.println("broker\t"+k.name+"\t"+esc(c)+"\t"+r); } }
      Map<String,Object> server=new kafka.server.KafkaConfig(base(),false){}.extractLogConfigMap();
      for (var k : new TreeMap<>(LogConfig.configDefCopy().configKeys()).values()) {
        List<String> cs=candidates(k); cs.addAll(List.of("1:2","1:2,3:4","*","1:2,*","1: 2","a:b","1:2:3"));
        for (String c : cs) { String r; try { LogConfig.validate(Map.of(),Map.of(k.name,c),server,false); r="ok"; } catch(Throwable e){ r=esc(message(e)); } System.out.println("topic\t"+k.name+"\t"+esc(c)+"\t"+r); } }
      return; }
    for (String block : Files.readString(Path.of(a[1])).split("\n\n")) { Properties p=new Properties();
      for (String l : block.split("\n")) if (l.contains("=") && !l.startsWith("#")) p.put(l.substring(0,l.indexOf('=')), l.substring(l.indexOf('=')+1));
      System.out.println(block.strip());
      try { var c=kafka.server.KafkaConfig.fromProps(p,false); StringBuilder b=new StringBuilder("----\n");
        b.append("listeners ").append(eps(c.listeners())).append("\nadvertised ").append(eps(c.effectiveAdvertisedBrokerListeners())).append("\ncontrollers ").append(eps(c.effectiveAdvertisedControllerListeners()));
        b.append("\ninter-broker ").append(c.interBrokerListenerName().value()).append("\nvoters ").append(new TreeMap<>(org.apache.kafka.raft.QuorumConfig.parseVoterConnections(c.quorumConfig().voters()))).append("\nbootstrap ").append(c.quorumConfig().bootstrapServers()).append("\ndirs ").append(c.logDirs()).append(" ").append(c.metadataLogDir());
        b.append("\nretention ").append(c.logRetentionTimeMillis()).append(" roll ").append(c.logRollTimeMillis()).append(" jitter ").append(c.logRollTimeJitterMillis()).append(" flush ").append(c.logFlushIntervalMs());
        System.out.println(b); } catch(Throwable e){ System.out.println("----\nerror "+esc(message(e))); }
      System.out.println(); } }
  static String eps(scala.collection.Seq<org.apache.kafka.common.Endpoint> s){ StringBuilder b=new StringBuilder("["); for (var e : scala.jdk.javaapi.CollectionConverters.asJava(s)) b.append(e.listener()+"|"+e.securityProtocol()+"|"+(e.host()==null?"":e.host())+"|"+e.port()+" "); return b.toString().strip()+"]"; }
}
