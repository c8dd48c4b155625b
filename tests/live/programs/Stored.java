import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Prints in one line of JSON which messages the queues of a topic hold, queue by queue in the order of their offsets.
 *
 * <p>Arguments: the NameServer, the topic.
 */
public final class Stored {
    private static final int BATCH = 32;

    private Stored() {
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("reader-of-all");
        consumer.setNamesrvAddr(args[0]);
        consumer.start();
        List<Map<String, ?>> stored = new ArrayList<>();
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(args[1])) {
            long most = consumer.maxOffset(queue);
            for (long offset = 0; offset < most;) {
                PullResult pulled = consumer.pull(queue, "*", offset, BATCH);
                if (pulled.getPullStatus() == PullStatus.FOUND) {
                    for (MessageExt message : pulled.getMsgFoundList()) {
                        String body = new String(message.getBody(), StandardCharsets.UTF_8);
                        stored.add(Map.of("brokerName", queue.getBrokerName(), "queueId", queue.getQueueId(),
                            "body", body));
                    }
                }
                offset = pulled.getNextBeginOffset();
            }
        }
        System.out.println(RemotingSerializable.toJson(Map.of("stored", stored), false));
        System.exit(0);
    }
}
