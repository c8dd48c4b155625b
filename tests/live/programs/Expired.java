import java.util.List;
import java.util.Random;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Fills every write queue of a topic and has the broker delete the files of the first messages, so that no queue begins
 * at 0 any more. Prints a line of JSON when that is so.
 *
 * <p>Arguments: the NameServer, the topic, the broker's address, messages for each queue, bytes of each.
 */
public final class Expired {
    private static final long POLL_MILLIS = 500;

    private Expired() {
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        DefaultMQProducer producer = new DefaultMQProducer("expired");
        producer.setNamesrvAddr(args[0]);
        producer.start();
        List<MessageQueue> queues = producer.fetchPublishMessageQueues(args[1]);
        byte[] body = new byte[Integer.parseInt(args[4])];
        new Random(1).nextBytes(body); // what can be compressed fills no file
        for (int i = 0; i < Integer.parseInt(args[3]); i++) {
            for (MessageQueue queue : queues) {
                producer.send(new Message(args[1], body), queue);
            }
        }
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setInstanceName("expired-" + ProcessHandle.current().pid());
        admin.setNamesrvAddr(args[0]);
        admin.start();
        admin.deleteExpiredCommitLogByAddr(args[2]);
        for (MessageQueue queue : queues) {
            while (admin.minOffset(queue) == 0) {
                Thread.sleep(POLL_MILLIS);
            }
        }
        System.out.println("{\"expired\":" + queues.size() + "}");
        admin.shutdown();
        producer.shutdown();
        System.exit(0);
    }
}
