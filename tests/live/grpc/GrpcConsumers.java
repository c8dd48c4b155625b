import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;

/**
 * Two gRPC consumers of one group, alive until standard input closes. Says {@code consuming} when both have started.
 *
 * <p>Arguments: the Proxy, the group, the topic.
 */
public final class GrpcConsumers {
    private GrpcConsumers() {
    }

    public static void main(String[] args) throws Exception {
        ClientConfiguration proxy = ClientConfiguration.newBuilder().setEndpoints(args[0]).enableSsl(false).build();
        FilterExpression all = new FilterExpression("*", FilterExpressionType.TAG);
        List<PushConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            consumers.add(ClientServiceProvider.loadService().newPushConsumerBuilder()
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
}
