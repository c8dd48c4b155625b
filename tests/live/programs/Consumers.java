import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Real push consumers of any groups, each with what may be wrong with it, told line by line on standard input:
 * {@code join GROUP NAME KEY=VALUE…}, {@code leave GROUP NAME}, {@code produce TOPIC PER_SECOND TAG},
 * {@code fill TOPIC PER_SECOND} (the first of its queues only), {@code quit}. Each line but the last is answered by one line of JSON.
 *
 * <p>Argument: the NameServer. Keys of {@code join}: {@code topics} joined by commas, each with {@code :TAGS} where it has
 * some; {@code strategy} as RocketMQ names it; {@code orderly=true}; {@code tries} after the first; {@code listener}, which is {@code ok},
 * {@code hangs} (never returns), {@code fails} (each message is to come again), {@code retries} (each message is to come
 * again once) or a number of milliseconds that each
 * call takes; {@code assigned=true} lets brokers assign the queues; {@code invisible}, the popInvisibleTime in
 * milliseconds; {@code tells=true} prints each message that comes in a line that begins with {@code got};
 * {@code nameServer} instead of the usual one. The client id is {@code 127.0.0.1@NAME}.
 */
public final class Consumers {
    private static final String CLIENT_IP = "127.0.0.1";
    /** 30 s when not set: how late a client would learn of its own retry topic, which the first heartbeat creates. */
    private static final int ROUTE_POLL_MILLIS = 2000;
    /** More than are asked for their running information at once: each waits for a broker's answer on such a thread. */
    private static final int CALLBACK_THREADS = 8;

    private final String nameServer;
    private final Map<String, DefaultMQPushConsumer> running = new TreeMap<>();
    private final ScheduledExecutorService sending = Executors.newSingleThreadScheduledExecutor();
    private DefaultMQProducer producer;

    private Consumers(String nameServer) {
        this.nameServer = nameServer;
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        Consumers consumers = new Consumers(args[0]);
        say(Map.of("ready", args[0]));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            say(consumers.answer(line.split(" ")));
        }
        Runtime.getRuntime().halt(0); // a listener that hangs would keep a shutdown waiting
    }

    private static void say(Map<String, ?> answer) {
        System.out.println(RemotingSerializable.toJson(answer, false));
    }

    private Map<String, ?> answer(String[] command) {
        try {
            switch (command[0]) {
                case "join":
                    return Map.of("joined", join(command[1], command[2], options(command)));
                case "leave":
                    running.remove(command[1] + " " + command[2]).shutdown();
                    return Map.of("left", command[2]);
                case "produce":
                    produce(command[1], Double.parseDouble(command[2]), command.length > 3 ? command[3] : "", false);
                    return Map.of("producing", command[1]);
                case "fill":
                    produce(command[1], Double.parseDouble(command[2]), "", true);
                    return Map.of("filling", command[1]);
                default:
                    return Map.of("error", "no such command: " + command[0]);
            }
        } catch (Exception problem) {
            return Map.of("error", problem.toString());
        }
    }

    private static Map<String, String> options(String[] command) {
        Map<String, String> options = new HashMap<>();
        for (String option : List.of(command).subList(3, command.length)) {
            options.put(option.split("=", 2)[0], option.split("=", 2)[1]);
        }
        return options;
    }

    private String join(String group, String name, Map<String, String> options) throws Exception {
        DefaultMQPushConsumer consumer =
            new DefaultMQPushConsumer(group, null, strategy(options.getOrDefault("strategy", "AVG")));
        consumer.setNamesrvAddr(options.getOrDefault("nameServer", nameServer));
        consumer.setClientIP(CLIENT_IP);
        consumer.setInstanceName(name);
        consumer.setPollNameServerInterval(ROUTE_POLL_MILLIS);
        consumer.setClientCallbackExecutorThreads(CALLBACK_THREADS);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        if (options.containsKey("assigned")) {
            consumer.getClass().getMethod("setClientRebalance", boolean.class).invoke(consumer, false); // not in 4.9
        }
        if (options.containsKey("invisible")) {
            long invisible = Long.parseLong(options.get("invisible"));
            consumer.getClass().getMethod("setPopInvisibleTime", long.class).invoke(consumer, invisible); // not in 4.9
        }
        if (options.containsKey("tries")) {
            consumer.setMaxReconsumeTimes(Integer.parseInt(options.get("tries")));
        }
        String listener = options.getOrDefault("listener", "ok");
        boolean tells = options.containsKey("tells");
        if (options.containsKey("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                consumed(listener, messages)
                    ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                if (tells) {
                    messages.forEach(message -> tell(group, message));
                }
                return consumed(listener, messages)
                    ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
        }
        for (String topic : options.get("topics").split(",")) {
            String[] parts = topic.split(":", 2);
            consumer.subscribe(parts[0], parts.length > 1 ? parts[1] : "*");
        }
        consumer.start();
        running.put(group + " " + name, consumer);
        return consumer.buildMQClientId();
    }

    private static void tell(String group, MessageExt message) {
        String body = new String(message.getBody(), StandardCharsets.UTF_8);
        Map<String, ?> row = Map.of("group", group, "body", body, "atMs", System.currentTimeMillis());
        System.out.println("got " + RemotingSerializable.toJson(row, false));
    }

    private static boolean consumed(String listener, List<MessageExt> messages) {
        try {
            if (listener.equals("hangs")) {
                waitForTheDatabase();
            } else if (!List.of("ok", "fails", "retries").contains(listener)) {
                Thread.sleep(Long.parseLong(listener));
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
        if (listener.equals("retries")) {
            return messages.get(0).getReconsumeTimes() > 0;
        }
        return !listener.equals("fails");
    }

    /** A frame that a stack trace is known by. */
    private static void waitForTheDatabase() throws InterruptedException {
        new CountDownLatch(1).await();
    }

    private void produce(String topic, double perSecond, String tag, boolean oneQueue) throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("producer-of-faults");
            producer.setNamesrvAddr(nameServer);
            producer.setClientIP(CLIENT_IP);
            producer.setInstanceName("producer");
            producer.start();
        }
        Message message = new Message(topic, tag, "message".getBytes(StandardCharsets.UTF_8));
        MessageQueue queue = oneQueue ? producer.fetchPublishMessageQueues(topic).get(0) : null;
        sending.scheduleAtFixedRate(() -> send(message, queue), 0, Math.round(1e6 / perSecond), TimeUnit.MICROSECONDS);
    }

    /** One that a broker refuses while it is busy is no reason to stop. */
    private void send(Message message, MessageQueue queue) {
        Message copy = new Message(message.getTopic(), message.getTags(), message.getBody());
        try {
            if (queue == null) {
                producer.send(copy);
            } else {
                producer.send(copy, queue);
            }
        } catch (Exception refused) {
            System.out.println("not sent: " + refused);
        }
    }

    private static AllocateMessageQueueStrategy strategy(String name) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash();
            default:
                throw new IllegalArgumentException("no such strategy: " + name);
        }
    }
}
