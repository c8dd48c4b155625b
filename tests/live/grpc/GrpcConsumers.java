import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;

/**
 * gRPC consumers of one group, alive until standard input closes. Says {@code consuming} when all have started.
 *
 * <p>Arguments: the Proxy, the group, the topic, and what each is: {@code push} or {@code simple}; two push consumers
 * where none is given.
 */
public final class GrpcConsumers {
    private GrpcConsumers() {
    }

    public static void main(String[] args) throws Exception {
        ClientConfiguration proxy = ClientConfiguration.newBuilder()
            .setEndpoints(args[0])
            .enableSsl(false)
            .setRequestTimeout(Duration.ofSeconds(20))
            .build();
        FilterExpression all = new FilterExpression("*", FilterExpressionType.TAG);
        List<AutoCloseable> consumers = new ArrayList<>();
        String[] kinds = args.length > 3 ? Arrays.copyOfRange(args, 3, args.length) : new String[] {"push", "push"};
        for (String kind : kinds) {
            consumers.add(kind.equals("simple") ? simple(proxy, args[1], Map.of(args[2], all))
                : ClientServiceProvider.loadService().newPushConsumerBuilder()
                    .setClientConfiguration(proxy)
                    .setConsumerGroup(args[1])
                    .setSubscriptionExpressions(Map.of(args[2], all))
                    .setMessageListener(message -> ConsumeResult.SUCCESS)
                    .build());
        }
        System.out.println("consuming");
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }

    private static SimpleConsumer simple(ClientConfiguration proxy, String group, Map<String, FilterExpression> topics)
        throws Exception {
        SimpleConsumer consumer = ClientServiceProvider.loadService().newSimpleConsumerBuilder()
            .setClientConfiguration(proxy)
            .setConsumerGroup(group)
            .setSubscriptionExpressions(topics)
            .setAwaitDuration(Duration.ofSeconds(2))
            .build();
        Thread receiving = new Thread(() -> receive(consumer));
        receiving.setDaemon(true);
        receiving.start();
        return consumer;
    }

    private static void receive(SimpleConsumer consumer) {
        while (true) {
            try {
                for (MessageView message : consumer.receive(16, Duration.ofSeconds(30))) {
                    consumer.ack(message);
                }
            } catch (Exception again) {
                continue;
            }
        }
    }
}
