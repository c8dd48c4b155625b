import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;

/**
 * Real gRPC consumers of any groups, told line by line on standard input, until it closes:
 * {@code simple GROUP TOPIC LOOPS AWAIT_MS INVISIBLE_MS ACK}, {@code push GROUP TOPIC ACK}. {@code ACK} is {@code true}, or
 * {@code false} for one that keeps what it receives. Each line is answered by a line of JSON; a message that comes is
 * told in one that begins with {@code got}, a receive that fails in one that begins with {@code failed}.
 *
 * <p>Argument: the Proxy.
 */
public final class GrpcReceivers {
    private static final FilterExpression ALL = new FilterExpression("*", FilterExpressionType.TAG);
    private static final int BATCH = 32;
    private static final long PAUSE_MILLIS = 1000;

    private final ClientConfiguration proxy;

    private GrpcReceivers(String endpoint) {
        proxy = ClientConfiguration.newBuilder().setEndpoints(endpoint).enableSsl(false).build();
    }

    public static void main(String[] args) throws Exception {
        GrpcReceivers receivers = new GrpcReceivers(args[0]);
        say("{\"ready\":true}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                long began = receivers.start(line.split(" "));
                say("{\"atMs\":" + began + "}");
            } catch (Exception problem) {
                say("{\"error\":\"" + problem.toString().replace('"', '\'').replace('\n', ' ') + "\"}");
            }
        }
        Runtime.getRuntime().halt(0); // clients have threads that would keep it waiting
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private long start(String[] told) throws Exception {
        if (told[0].equals("push")) {
            push(told[1], told[2], Boolean.parseBoolean(told[3]));
            return System.currentTimeMillis();
        }
        SimpleConsumer consumer = ClientServiceProvider.loadService().newSimpleConsumerBuilder()
            .setClientConfiguration(proxy)
            .setConsumerGroup(told[1])
            .setAwaitDuration(Duration.ofMillis(Long.parseLong(told[4])))
            .setSubscriptionExpressions(Map.of(told[2], ALL))
            .build();
        Duration invisible = Duration.ofMillis(Long.parseLong(told[5]));
        boolean ack = Boolean.parseBoolean(told[6]);
        long began = System.currentTimeMillis();
        for (int i = 0; i < Integer.parseInt(told[3]); i++) {
            new Thread(() -> receive(consumer, told[1], invisible, ack)).start();
        }
        return began;
    }

    private static void receive(SimpleConsumer consumer, String group, Duration invisible, boolean ack) {
        while (true) {
            try {
                for (MessageView message : consumer.receive(BATCH, invisible)) {
                    tell(group, message);
                    if (ack) {
                        consumer.ackAsync(message);
                    }
                }
            } catch (ClientException refused) {
                say("failed " + group + " " + refused.getMessage().replace('\n', ' '));
                pause(PAUSE_MILLIS);
            }
        }
    }

    private void push(String group, String topic, boolean ack) throws ClientException {
        ClientServiceProvider.loadService().newPushConsumerBuilder()
            .setClientConfiguration(proxy)
            .setConsumerGroup(group)
            .setSubscriptionExpressions(Map.of(topic, ALL))
            .setMessageListener(message -> {
                tell(group, message);
                if (!ack) {
                    pause(Long.MAX_VALUE);
                }
                return ConsumeResult.SUCCESS;
            })
            .build();
    }

    private static void tell(String group, MessageView message) {
        long now = System.currentTimeMillis();
        String body = StandardCharsets.UTF_8.decode(message.getBody()).toString();
        say("got {\"group\":\"" + group + "\",\"body\":\"" + body + "\",\"atMs\":" + now + "}");
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
