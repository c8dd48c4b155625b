import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Creates topics, each on the brokers named, and ends only when the NameServer's routes show all of it.
 *
 * <p>Prints how many, and {@code atUs}, epoch microseconds: the last broker has told the NameServer of its topic.
 *
 * <p>Arguments: the NameServer, then one {@code topic,brokerAddress,readQueues,writeQueues,perm} per topic and broker.
 */
public final class Topics {
    private static final long POLL_MILLIS = 200;
    private static final int TOPIC_NOT_EXIST = 17;

    private Topics() {
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setInstanceName("topics-" + ProcessHandle.current().pid());
        admin.setNamesrvAddr(args[0]);
        admin.start();
        List<String[]> wanted = new ArrayList<>();
        for (int i = 1; i < args.length; i++) {
            wanted.add(args[i].split(","));
        }
        for (String[] row : wanted) {
            admin.createAndUpdateTopicConfig(row[1], config(row));
        }
        long atUs = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
        for (String[] row : wanted) {
            while (!isRouted(admin, row)) {
                Thread.sleep(POLL_MILLIS);
            }
        }
        System.out.println("{\"created\":" + wanted.size() + ",\"atUs\":" + atUs + "}");
        admin.shutdown();
        System.exit(0);
    }

    private static TopicConfig config(String[] row) {
        TopicConfig config = new TopicConfig(row[0]);
        config.setReadQueueNums(Integer.parseInt(row[2]));
        config.setWriteQueueNums(Integer.parseInt(row[3]));
        config.setPerm(Integer.parseInt(row[4]));
        return config;
    }

    private static boolean isRouted(DefaultMQAdminExt admin, String[] row) throws Exception {
        try {
            var route = admin.examineTopicRouteInfo(row[0]);
            return route.getBrokerDatas().stream()
                .filter(broker -> broker.getBrokerAddrs().containsValue(row[1]))
                .anyMatch(broker -> route.getQueueDatas().stream()
                    .filter(queues -> queues.getBrokerName().equals(broker.getBrokerName()))
                    .anyMatch(queues -> queues.getReadQueueNums() == Integer.parseInt(row[2])
                        && queues.getWriteQueueNums() == Integer.parseInt(row[3])
                        && queues.getPerm() == Integer.parseInt(row[4])));
        } catch (MQClientException unknown) {
            if (unknown.getResponseCode() == TOPIC_NOT_EXIST) {
                return false; // no broker has told the NameServer of the topic yet
            }
            throw unknown;
        }
    }
}
