import org.apache.kafka.clients.admin.*; import org.apache.kafka.common.config.*; import java.util.*;
public class Desc { static String v(String s){return s==null?"\\N":s.replace("\n","\\n").replace("\t","\\t");}
 static void print(Admin ad, ConfigResource r) throws Exception {
  var c=ad.describeConfigs(List.of(r), new DescribeConfigsOptions().includeSynonyms(true)).all().get().get(r);
  System.out.println("# "+r.type()+" "+r.name());
  for (var e : new TreeMap<String,ConfigEntry>(){{ for (var x: c.entries()) put(x.name(),x);}}.values()) { StringBuilder b=new StringBuilder();
   for (var s: e.synonyms()) b.append("\t").append(s.name()).append("|").append(v(s.value())).append("|").append(s.source());
   System.out.println(e.name()+"\t"+v(e.value())+"\t"+e.source()+"\t"+(e.isReadOnly()?"ro":"rw")+"\t"+(e.isSensitive()?"sensitive":"plain")+"\t"+e.type()+b); } }
 public static void main(String[] a) throws Exception { var ad=Admin.create(Map.of("bootstrap.servers",a[0]));
  if (a[1].equals("b")) {
   var B=new ConfigResource(ConfigResource.Type.BROKER,"1"); var D=new ConfigResource(ConfigResource.Type.BROKER,"");
   ad.createTopics(List.of(new NewTopic("t",1,(short)1).configs(Map.of("retention.ms","1000","cleanup.policy","compact","segment.bytes","2097152","min.cleanable.dirty.ratio","0.75")))).all().get();
   ad.createTopics(List.of(new NewTopic("u",1,(short)1))).all().get();
   java.util.function.BiFunction<String,String,AlterConfigOp> op=(k,x)->new AlterConfigOp(new ConfigEntry(k,x),AlterConfigOp.OpType.SET);
   ad.incrementalAlterConfigs(Map.of(D, List.of(op.apply("log.retention.ms","7200000"), op.apply("log.segment.bytes","4194304"), op.apply("min.insync.replicas","1"), op.apply("compression.type","zstd"), op.apply("max.connections","700")))).all().get();
   ad.incrementalAlterConfigs(Map.of(B, List.of(op.apply("log.segment.bytes","8388608"), op.apply("log.cleaner.threads","2"), op.apply("compression.zstd.level","5"), op.apply("leader.replication.throttled.rate","1000"), op.apply("listener.name.plaintext.ssl.truststore.password","xx"), op.apply("listener.name.plaintext.ssl.truststore.type","PEM"), op.apply("listener.name.plaintext.max.connection.creation.rate","12")))).all().get();
   Thread.sleep(2000); print(ad,B); print(ad,D); print(ad,new ConfigResource(ConfigResource.Type.TOPIC,"t")); print(ad,new ConfigResource(ConfigResource.Type.TOPIC,"u"));
  } else {
   ad.createTopics(List.of(new NewTopic("t",1,(short)1).configs(Map.of("cleanup.policy","compact,delete")))).all().get();
   ad.createTopics(List.of(new NewTopic("u",1,(short)1))).all().get(); Thread.sleep(500);
   print(ad,new ConfigResource(ConfigResource.Type.BROKER,"1")); print(ad,new ConfigResource(ConfigResource.Type.BROKER,"")); print(ad,new ConfigResource(ConfigResource.Type.TOPIC,"t"));print(ad,new ConfigResource(ConfigResource.Type.TOPIC,"u"));
   print(ad,new ConfigResource(ConfigResource.Type.GROUP,"g")); }
  ad.close(); } }
