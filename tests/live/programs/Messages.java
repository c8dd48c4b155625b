import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Sends one message to the queue named for each line {@code TOPIC BROKER QUEUE BODY} of standard input, and answers
 * with a line of JSON: when it set out, in epoch milliseconds.
 *
 * <p>Argument: the NameServer.
 */
public final class Messages {
    private static final int ATTEMPTS = 5;

    private Messages() {
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        DefaultMQProducer producer = new DefaultMQProducer("sender-of-messages");
        producer.setNamesrvAddr(args[0]);
        producer.start();
        System.out.println("{\"ready\":true}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] part = line.split(" ");
            Message message = new Message(part[0], part[3].getBytes(StandardCharsets.UTF_8));
            long began = sent(producer, message, new MessageQueue(part[0], part[1], Integer.parseInt(part[2])));
            System.out.println("{\"body\":\"" + part[3] + "\",\"atMs\":" + began + "}");
        }
        System.exit(0);
    }

    /** When the attempt that succeeded set out: a busy machine may not answer the first one in time. */
    private static long sent(DefaultMQProducer producer, Message message, MessageQueue queue) throws Exception {
        for (int attempt = 1; true; attempt++) {
            long began = System.currentTimeMillis();
            try {
                producer.send(message, queue);
                return began;
            } catch (Exception refused) {
                if (attempt == ATTEMPTS) {
                    throw refused;
                }
            }
        }
    }
}
