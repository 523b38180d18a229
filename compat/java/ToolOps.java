import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Kafka's command-line tools, run by their main methods in this JVM: each with input and output of its own, with classes of its
 * own (some keep counters in static fields), and with Exit turned into an exception.
 */
final class ToolOps {
    private ToolOps() { }

    /** The streams and the exit code of the tool that a thread, or the thread that started it, is running. */
    private static final class Run {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final InputStream in;
        /** What the tool wants done when its JVM goes down: the console producer closes its producer only there. */
        final List<Runnable> shutdownHooks = new ArrayList<>();
        Integer exit;
        /** The tool has called Exit: what it prints from there to its end, a real JVM would never have run. */
        boolean gone;

        Run(byte[] input) {
            in = new ByteArrayInputStream(input);
        }
    }

    private static final InheritableThreadLocal<Run> CURRENT = new InheritableThreadLocal<>();

    /** Thrown by Exit inside a tool; an Error, since tools catch exceptions. */
    private static final class ToolExit extends Error {
        private static final long serialVersionUID = 1L;

        ToolExit() {
            super("exit", null, false, false);
        }
    }

    /** Replaces standard output and error by streams that go to the running tool, and Exit by an exception. */
    static void takeOverStreams() {
        System.setOut(new PrintStream(new Dispatcher(true, OutputStream.nullOutputStream()), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new Dispatcher(false, System.err), true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> leave(code, message));
        Exit.setHaltProcedure((code, message) -> leave(code, message));
        Exit.setShutdownHookAdder((name, runnable) -> {
            Run run = CURRENT.get();
            if (run != null) {
                run.shutdownHooks.add(runnable);
            }
        });
    }

    /** Replaces standard input, after the driver has taken the real one for itself. */
    static void takeOverInput() {
        System.setIn(new FilterInputStream(InputStream.nullInputStream()) {
            private InputStream source() {
                Run run = CURRENT.get();
                return run == null ? in : run.in;
            }

            @Override
            public int read() throws IOException {
                return source().read();
            }

            @Override
            public int read(byte[] b, int off, int len) throws IOException {
                return source().read(b, off, len);
            }

            @Override
            public int available() throws IOException {
                return source().available();
            }
        });
    }

    private static void leave(int code, String message) {
        Run run = CURRENT.get();
        if (run != null && run.exit == null) {
            run.exit = code;
            if (message != null) {
                System.err.println(message);
            }
            run.gone = true;
        }
        throw new ToolExit();
    }

    private static final class Dispatcher extends OutputStream {
        private final boolean standardOut;
        private final OutputStream otherwise;

        Dispatcher(boolean standardOut, OutputStream otherwise) {
            this.standardOut = standardOut;
            this.otherwise = otherwise;
        }

        private OutputStream sink() {
            Run run = CURRENT.get();
            if (run == null) {
                return otherwise;
            }
            return run.gone ? OutputStream.nullOutputStream() : standardOut ? run.out : run.err;
        }

        @Override
        public void write(int b) throws IOException {
            sink().write(b);
        }

        @Override
        public void write(byte[] b, int off, int len) throws IOException {
            sink().write(b, off, len);
        }
    }

    /** Loads the tools' classes anew, and everything else from the JVM's own class path. */
    private static final class FreshTools extends ClassLoader {
        FreshTools() {
            super(ToolOps.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.") || name.startsWith("org.apache.kafka.tools.api.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                return known != null ? known : define(name);
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (in == null) {
                    throw new ClassNotFoundException(name);
                }
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    static JsonNode tool(Driver.Call call) throws Exception {
        Run run = new Run(call.text("stdin").getBytes(StandardCharsets.UTF_8));
        CURRENT.set(run);
        FreshTools loader = new FreshTools();
        Thread.currentThread().setContextClassLoader(loader);
        List<String> args = new ArrayList<>();
        call.args().path("args").forEach(a -> args.add(a.asText()));
        try {
            Class<?> tool = loader.loadClass(call.text("class"));
            tool.getMethod("main", String[].class).invoke(null, (Object) args.toArray(new String[0]));
        } catch (InvocationTargetException e) {
            if (run.exit == null) {
                // What a JVM does with an exception out of main.
                e.getCause().printStackTrace();
                run.exit = 1;
            }
        } finally {
            run.gone = false;
            run.shutdownHooks.forEach(Runnable::run);
            CURRENT.remove();
        }
        ObjectNode answer = Driver.JSON.createObjectNode();
        answer.put("exit", run.exit == null ? 0 : run.exit);
        answer.put("stdout", run.out.toString(StandardCharsets.UTF_8));
        answer.put("stderr", run.err.toString(StandardCharsets.UTF_8));
        return answer;
    }
}
