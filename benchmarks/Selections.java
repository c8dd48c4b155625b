import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Runs RocketMQ's own pick of a producer's queue in a loop, as first attempts do: without a last broker.
 *
 * <p>Reads lines: {@code topic NAME QUEUES}, then a {@code BROKER ID} a queue; {@code start ON ISOLATED} makes a new fault
 * strategy with one broker isolated, or none at {@code -}, and sets the round robin to 0. {@code checksum PICKS} answers
 * with one over the next picks; {@code time MILLIS} with how many picks there were in at least so long, and the
 * nanoseconds that they took.
 */
public final class Selections {
    private static final int AT_ONCE = 10_000;
    private static final List<MessageQueue> QUEUES = new ArrayList<>();
    /** Read by nobody; keeps the compiler from leaving out work whose result is not used. */
    private static volatile int picked;

    private TopicPublishInfo topic;
    private MQFaultStrategy strategy;
    private String isolated;

    private Selections() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Selections selections = new Selections();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "topic":
                    read(in, words[1], Integer.parseInt(words[2]));
                    break;
                case "start":
                    selections.start(words[1].equals("true"), words[2]);
                    break;
                case "checksum":
                    System.out.println(selections.checksum(Integer.parseInt(words[1])));
                    break;
                case "time":
                    System.out.println(selections.time(Long.parseLong(words[1])));
                    break;
                default:
                    throw new IllegalArgumentException(line);
            }
        }
    }

    private static void read(BufferedReader in, String name, int queues) throws IOException {
        QUEUES.clear();
        for (int i = 0; i < queues; i++) {
            String[] words = in.readLine().split(" ");
            QUEUES.add(new MessageQueue(name, words[0], Integer.parseInt(words[1])));
        }
    }

    @SuppressWarnings("unchecked")
    private void start(boolean on, String broker) throws Exception {
        topic = new TopicPublishInfo();
        topic.setMessageQueueList(new ArrayList<>(QUEUES));
        topic.setHaveTopicRouterInfo(true);
        strategy = new MQFaultStrategy(new ClientConfig(), null, null);
        strategy.setSendLatencyFaultEnable(on);
        isolated = broker;
        Field index = topic.getSendWhichQueue().getClass().getDeclaredField("threadLocalIndex");
        index.setAccessible(true);
        ((ThreadLocal<Integer>) index.get(topic.getSendWhichQueue())).set(0);
    }

    /** As after an attempt of 20 s: for the next 30 s, longer than anything that is timed here. */
    private void isolate() {
        if (!isolated.equals("-")) {
            strategy.updateFaultItem(isolated, 20_000, false, true);
        }
    }

    private long checksum(int picks) {
        isolate();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < picks; i++) {
            MessageQueue queue = strategy.selectOneMessageQueue(topic, null, false);
            text.append(queue.getBrokerName()).append(' ').append(queue.getQueueId()).append('\n');
        }
        CRC32 crc = new CRC32();
        crc.update(text.toString().getBytes(StandardCharsets.UTF_8));
        return crc.getValue();
    }

    private String time(long millis) {
        isolate();
        long start = System.nanoTime();
        long picks = 0;
        long elapsed;
        do {
            picked = some();
            picks += AT_ONCE;
            elapsed = System.nanoTime() - start;
        } while (elapsed < millis * 1_000_000);
        return picks + " " + elapsed;
    }

    private int some() {
        int sum = 0;
        for (int i = 0; i < AT_ONCE; i++) {
            sum += strategy.selectOneMessageQueue(topic, null, false).getQueueId();
        }
        return sum;
    }
}
