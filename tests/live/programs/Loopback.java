import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.util.Arrays;

/**
 * Starts another main class so that nothing it opens can be reached from outside, and so that it cannot outlive us.
 *
 * <p>RocketMQ 4.9.7 has no bind address, and in no version does the HA service have one: both listen on the wildcard.
 * The JDK keeps one wildcard object per process; making it 127.0.0.1 before RocketMQ starts moves every such socket.
 * The system property {@code loopback} names another address of loopback, for servers that all need the same port.
 *
 * <p>Standard input is a lifeline: a test run that is killed closes it, and the server then ends by itself.
 */
public final class Loopback {
    private Loopback() {
    }

    public static void main(String[] args) throws Exception {
        listenOnLoopbackOnly();
        Thread lifeline = new Thread(Loopback::endWithStandardInput, "lifeline");
        lifeline.setDaemon(true);
        lifeline.start();
        Object rest = Arrays.copyOfRange(args, 1, args.length);
        Class.forName(args[0]).getMethod("main", String[].class).invoke(null, rest);
    }

    private static void listenOnLoopbackOnly() throws Exception {
        Field holder = InetAddress.class.getDeclaredField("impl");
        holder.setAccessible(true);
        Object impl = holder.get(null);
        Field wildcard = impl.getClass().getDeclaredField("anyLocalAddress");
        wildcard.setAccessible(true);
        wildcard.set(impl, InetAddress.getByName(System.getProperty("loopback", "127.0.0.1")));
    }

    private static void endWithStandardInput() {
        try {
            while (System.in.read() != -1) {
                continue;
            }
        } catch (IOException closed) {
            // The same news as the end of the stream.
        }
        Runtime.getRuntime().halt(0);
    }
}
