import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;

/**
 * One JVM with a server of Apache Kafka in it, of whichever version is on the class path, and with that version's clients and tools.
 * It takes a command a line, its words parted by tabs, and answers each with a line that begins with "ok" or "error"; what it has to
 * say in between begins with "said". The text behind is in base64. Everything that is logged goes to standard error.
 *
 * format FILE ARGS…   StorageTool format
 * start FILE          a server with these properties, ready when the command is answered
 * stop                a clean stop of the server
 * load ADDRESS [SASL]        the first round of what a directory is filled with, see Load; with the address of a listener for
 *                            SASL/PLAIN delegation tokens, too
 * transact ADDRESS PREFIX    transactions without end, one after another; each that was committed is said; see Load
 * desert                     no further transactions; the one under way is left as it is
 * kept ADDRESS [SASL]        everything that is not in topics and groups, as text; see Kept
 * tier ADDRESS TOPIC         a topic most of whose segments are in remote storage only
 * earliest ADDRESS TOPIC     the first offset of its partition 0
 * dump ARGS…          DumpLogSegments; answers what it printed
 */
public final class Handover {
    private static final PrintStream ANSWERS = System.out;
    private static KafkaRaftServer server;
    private static Load load;
    private static Transactions transactions;

    private Handover() { }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            try {
                answer("ok", run(words[0], Arrays.copyOfRange(words, 1, words.length)));
            } catch (Throwable e) {
                e.printStackTrace();
                answer("error", words[0] + ": " + e);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    static synchronized void answer(String kind, String text) {
        ANSWERS.println(kind + " " + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8)));
        ANSWERS.flush();
    }

    private static String run(String command, String[] args) throws Exception {
        switch (command) {
            case "format":
                return format(args);
            case "start":
                server = new KafkaRaftServer(KafkaConfig.fromProps(properties(args[0])), Time.SYSTEM);
                server.startup();
                return "";
            case "stop":
                if (load != null) {
                    load.abandon();
                    load = null;
                }
                server.shutdown();
                server.awaitShutdown();
                return "";
            case "load":
                load = new Load(args[0]);
                load.all();
                if (args.length > 1) {
                    Tokens.create(args[1]);
                }
                return "";
            case "transact":
                transactions = new Transactions(args[0], args[1], id -> answer("said", id));
                transactions.start();
                return "";
            case "desert":
                transactions.desert();
                return "";
            case "kept":
                return Kept.describe(args[0], args.length > 1 ? args[1] : null);
            case "tier":
                Tiered.fill(args[0], args[1]);
                return "";
            case "earliest":
                return "" + Tiered.earliest(args[0], args[1]);
            case "dump":
                return dump(args);
            default:
                throw new IllegalArgumentException("unknown command " + command);
        }
    }

    private static Properties properties(String file) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream in = new FileInputStream(file)) {
            properties.load(in);
        }
        return properties;
    }

    private static String format(String[] args) throws Exception {
        String[] all = new String[args.length + 2];
        all[0] = "format";
        all[1] = "-c";
        System.arraycopy(args, 0, all, 2, args.length);
        Object exit;
        try {
            exit = Class.forName("kafka.tools.StorageTool").getMethod("execute", String[].class, PrintStream.class).invoke(null, all, System.err);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        }
        if (!Integer.valueOf(0).equals(exit)) {
            throw new IllegalStateException("exit " + exit);
        }
        return "";
    }

    /** The tool moved to another package in 4.x. */
    private static String dump(String[] args) throws Exception {
        Class<?> tool;
        try {
            tool = Class.forName("org.apache.kafka.tools.DumpLogSegments");
        } catch (ClassNotFoundException e) {
            tool = Class.forName("kafka.tools.DumpLogSegments");
        }
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        PrintStream errors = System.err;
        PrintStream stream = new PrintStream(printed, true, StandardCharsets.UTF_8);
        System.setOut(stream);
        System.setErr(stream);
        try {
            // Scala's Console has the stream of the time when it was loaded, unless it is told.
            scala.Console$.MODULE$.setOutDirect(stream);
            tool.getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(printed.toString(StandardCharsets.UTF_8), e.getCause());
        } finally {
            System.setOut(before);
            System.setErr(errors);
            scala.Console$.MODULE$.setOutDirect(before);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }
}
