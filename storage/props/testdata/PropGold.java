import java.io.*; import java.nio.file.*; import java.util.*;
// Prints, for every input: its bytes in hex, then what java.util.Properties.load(InputStream) makes of it, and what store writes for that.
public class PropGold {
  static String hex(byte[] b){ StringBuilder s=new StringBuilder(); for(byte x:b) s.append(String.format("%02x",x)); return s.toString(); }
  static String units(String t){ StringBuilder s=new StringBuilder(); for(char c: t.toCharArray()) s.append(String.format("%04x",(int)c)); return s.toString(); }
  static void one(byte[] in) throws Exception { System.out.println("in "+hex(in)); Properties p=new Properties();
    try { p.load(new ByteArrayInputStream(in)); } catch(IllegalArgumentException e){ System.out.println("error\n"); return; }
    for (String k : new TreeSet<>(p.stringPropertyNames())) { System.out.println("kv "+units(k)+" "+units(p.getProperty(k)));
      Properties q=new Properties(); q.setProperty(k,p.getProperty(k)); var o=new ByteArrayOutputStream(); q.store(o,null); String s=o.toString("ISO-8859-1"); s=s.substring(s.indexOf('\n')+1); System.out.println("store "+hex(s.getBytes("ISO-8859-1"))); }
    System.out.println(); }
  public static void main(String[] a) throws Exception {
    String[] cases = { "", "\n\n", "a=b", "a = b ", "a:b", "a b", "a\tb", "a\fb", "a", "a=", "=b", ":b", " = b", "a==b", "a = = b", "a : = b", "a  =:b", "a\\ b=c", "a\\=b=c", "a\\:b:c", "#a=b", "!a=b", " #a=b", "\t!x\na=b", "#a\\\nb=c", "! x \\\\\\\n y=z", "a=b\\\nc", "a=b\\\n   c", "a=b\\\r\n\tc", "a=b\\\rc", "a\\\nb=c", "a\\\n  =c", "a=b\\\\\nc=d", "a=b\\\\\\\nc=d", "a=b\\\n#c", "a=b\\\n\nc=d", "a=b\\\n\\\n\\\nc", "\\\na=b", "  \\\n  \\\n a=b", "\\\n#x\na=b", "\\\n\\\n", "\\", "a\\", "a=\\", "a=b\\", "a=b\\\\", "a=\\u0041", "a=\\u00e9\\u20AC", "a=\\uD83D\\uDE00", "a=\\uD83D", "a=\\uDE00x", "a=\\uD83Dx", "a=\\uD83D\\uD83D\\uDE00", "\\u0061=1", "a=\\u004", "a=\\u00g1", "a=\\uu0041", "a=\\", "a=\\t\\n\\r\\f\\b\\v\\0\\z\\\"\\'", "a=1\na=2\na=3", "b=1\na=2\nb=3", "a=x\r\nb=y\r\n", "a=x\rb=y", "a=x\r\rb=y", "a=x  \t", "a=\u00e9\u00ff", "\u00e9=x", "a=\u00a0x", "a=${b}", "a=x#y", "a=x!y", "a#b=c", "a\u0000b=c\u0000d", "a=\u0001\u007f\u0080", "\u000bx=y", "a=b\u0085c", "\ufeff".equals("")?"":"\u00ef\u00bb\u00bfa=b", "a=\\\n\\u0041", "a=\\\\u0041", "a\\\\=b", "a\\\\\\=b", "a=\\\r\n\r\nb=c", "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.x.ScramLoginModule required \\\n   username=\"admin\" \\\n   password=\"a=b;c\";\nnode.id=1", "a= \\ b", "a=\\ b\\ ", "a\\\tb c", "\\:=x", "\\==x", "\\#a=b", "\\!a=b", "a=\\\n", "a=\\\n ", "a=\\\n\n", "a\\\n", "a \\\n b", "a\\\n b", "a \\\n = b", "a = \\\n b", "a=b\\\n \\\n c", "#\\\n#\\\na=b", " \\\n#c=d\n", "\n \n\t\n\f\na=b", "\\u003da=b", "a=\\u005cu0041", "a=\\u000a", "a=\\\f\\\t", "a=b\\ \nc=d" };
    for (String c : cases) one(c.getBytes("ISO-8859-1"));
    String alphabet = "ab=: \t\f\\\\\\\n\n\r#!u0041\u00e9"; Random r=new Random(7);
    for (int i=0;i<3000;i++){ int n=1+r.nextInt(14); StringBuilder s=new StringBuilder(); for(int j=0;j<n;j++) s.append(alphabet.charAt(r.nextInt(alphabet.length()))); one(s.toString().getBytes("ISO-8859-1")); }
  } }
