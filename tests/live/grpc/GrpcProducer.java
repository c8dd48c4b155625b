import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.AbstractSet;
import java.util.Iterator;
import java.util.Set;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.java.impl.ClientImpl;
import org.apache.rocketmq.client.java.impl.producer.SendReceiptImpl;
import org.apache.rocketmq.client.java.route.Endpoints;
import org.apache.rocketmq.client.java.route.MessageQueueImpl;

/**
 * A gRPC producer that is told line by line on standard input, until it closes: {@code group GROUP} sends a message of
 * that message group, with the group as its body; {@code send PAUSE_MS} sends messages from then on, whose bodies count
 * from 0; {@code stop} ends that. Each command is answered by a line of JSON. A message that was sent is told in a line
 * that begins with {@code sent}; one that begins with {@code failed} or {@code rejoined} is the end of an attempt that
 * isolates its endpoint, or of an isolation.
 *
 * <p>Arguments: the Proxies, the topic. The queue of a message is the one that the SDK picked; a Proxy may store it in
 * another one.
 */
public final class GrpcProducer {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();

    private final Producer producer;
    private final String topic;
    private volatile boolean isSending;

    private GrpcProducer(String endpoints, String topic) throws Exception {
        ClientConfiguration proxies = ClientConfiguration.newBuilder().setEndpoints(endpoints).enableSsl(false).build();
        this.topic = topic;
        producer = PROVIDER.newProducerBuilder().setClientConfiguration(proxies).setTopics(topic).build();
        Field isolated = ClientImpl.class.getDeclaredField("isolated");
        isolated.setAccessible(true);
        @SuppressWarnings("unchecked")
        Set<Endpoints> inside = (Set<Endpoints>) isolated.get(producer);
        isolated.set(producer, new Told(inside));
    }

    public static void main(String[] args) throws Exception {
        GrpcProducer sender = new GrpcProducer(args[0], args[1]);
        say("{\"startedMs\":" + System.currentTimeMillis() + "}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] part = line.split(" ", 2);
            if (part[0].equals("group")) {
                say(sender.send(part[1], part[1]));
            } else if (part[0].equals("send")) {
                sender.start(Long.parseLong(part[1]));
                say("{}");
            } else {
                sender.isSending = false;
                say("{}");
            }
        }
        Runtime.getRuntime().halt(0); // clients have threads that would keep it waiting
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** A message each so many milliseconds, counted from the first one: one that is late is sent at once. */
    private void start(long pauseMillis) {
        isSending = true;
        Thread thread = new Thread(() -> {
            long first = System.currentTimeMillis();
            for (int number = 0; isSending; number++) {
                long wait = first + number * pauseMillis - System.currentTimeMillis();
                try {
                    Thread.sleep(Math.max(0, wait));
                } catch (InterruptedException end) {
                    return;
                }
                say("sent " + send(Integer.toString(number), null));
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private String send(String body, String group) {
        MessageBuilder message = PROVIDER.newMessageBuilder().setTopic(topic)
            .setBody(body.getBytes(StandardCharsets.UTF_8));
        if (group != null) {
            message.setMessageGroup(group);
        }
        long began = System.currentTimeMillis();
        String ended;
        try {
            MessageQueueImpl queue = ((SendReceiptImpl) producer.send(message.build())).getMessageQueue();
            ended = "\"brokerName\":\"" + queue.getBroker().getName() + "\",\"queueId\":" + queue.getQueueId();
        } catch (ClientException lost) {
            ended = "\"lostBy\":\"" + lost.getClass().getSimpleName() + "\"";
        }
        long took = System.currentTimeMillis() - began;
        return "{\"body\":\"" + body + "\",\"atMs\":" + began + ",\"tookMs\":" + took + "," + ended + "}";
    }

    /** The endpoints that are isolated, which tells of each attempt that isolates one and of each end of an isolation. */
    private static final class Told extends AbstractSet<Endpoints> {
        private final Set<Endpoints> inside;

        private Told(Set<Endpoints> inside) {
            this.inside = inside;
        }

        @Override
        public boolean add(Endpoints endpoints) {
            tell("failed", endpoints);
            return inside.add(endpoints);
        }

        @Override
        public boolean remove(Object endpoints) {
            boolean was = inside.remove(endpoints);
            if (was) {
                tell("rejoined", endpoints);
            }
            return was;
        }

        @Override
        public boolean contains(Object endpoints) {
            return inside.contains(endpoints);
        }

        @Override
        public Iterator<Endpoints> iterator() {
            return inside.iterator();
        }

        @Override
        public int size() {
            return inside.size();
        }

        private static void tell(String what, Object endpoints) {
            say(what + " {\"endpoints\":\"" + endpoints + "\",\"atMs\":" + System.currentTimeMillis() + "}");
        }
    }
}
