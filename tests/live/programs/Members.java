import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Real push consumers of one group, told what to do line by line on standard input: {@code join NAME [NAMESERVER]},
 * {@code leave NAME}, {@code owned}, {@code popped} (from which queues each consumer takes messages by POP), {@code seen},
 * {@code first}, {@code received TEXT} (from which queues each consumer got a message of that text), {@code quit}. Each
 * line but the last is answered by one line of JSON.
 *
 * <p>Arguments: NameServer, group, strategy as RocketMQ names it, topics joined by commas, members to start with.
 * Member {@code NAME} has the client id {@code CLIENT_IP@NAME}; the end of standard input means {@code quit}. The property
 * {@code members.consumeFrom} is RocketMQ's {@code ConsumeFromWhere}; with {@code members.assigned=true} they let brokers
 * assign their queues (5.x).
 */
public final class Members {
    private static final String CLIENT_IP = "127.0.0.1";
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    /** 30 s when not set: how late a client would learn of its own retry topic, which the first heartbeat creates. */
    private static final int ROUTE_POLL_MILLIS = 2000;
    /** More than are asked for their running information at once: each waits for a broker's answer on such a thread. */
    private static final int CALLBACK_THREADS = 32;
    private static final int STARTS = 3;

    private final String nameServer;
    private final String group;
    private final String strategy;
    private final String[] topics;
    private final Map<String, DefaultMQPushConsumer> running = new TreeMap<>();
    private final Map<MessageQueue, Long> first = new ConcurrentHashMap<>();
    private final Map<String, Map<String, Set<MessageQueue>>> received = new ConcurrentHashMap<>();

    private Members(String[] args) {
        nameServer = args[0];
        group = args[1];
        strategy = args[2];
        topics = args[3].split(",");
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        Members members = new Members(args);
        for (int i = 4; i < args.length; i++) {
            members.join(args[i], args[0]);
        }
        say(Map.of("ready", members.running.keySet()));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            say(members.answer(line.split(" ", 2)));
        }
        for (String name : List.copyOf(members.running.keySet())) {
            members.leave(name);
        }
        System.exit(0);
    }

    private static void say(Map<String, ?> answer) {
        OUT.println(RemotingSerializable.toJson(answer, false));
    }

    private Map<String, ?> answer(String[] command) {
        try {
            switch (command[0]) {
                case "join":
                    String[] names = command[1].split(" ");
                    return Map.of("joined", join(names[0], names.length > 1 ? names[1] : nameServer));
                case "leave":
                    return Map.of("left", leave(command[1]));
                case "owned":
                    return Map.of("owned", owned());
                case "popped":
                    return Map.of("popped", rows(popped()));
                case "seen":
                    return Map.of("seen", seen());
                case "first":
                    return Map.of("first", first());
                case "received":
                    return Map.of("received", rows(received.getOrDefault(command[1], Map.of())));
                default:
                    return Map.of("error", "no such command: " + command[0]);
            }
        } catch (Exception problem) {
            return Map.of("error", problem.toString());
        }
    }

    /** On a busy machine a client may not reach the NameServer in time. */
    private String join(String name, String nameServer) throws Exception {
        for (int attempt = 1;; attempt++) {
            DefaultMQPushConsumer consumer = consumer(name, nameServer);
            try {
                consumer.start();
                running.put(name, consumer);
                return consumer.buildMQClientId();
            } catch (MQClientException | IllegalStateException notReached) {
                consumer.shutdown();
                if (attempt == STARTS) {
                    throw notReached;
                }
            }
        }
    }

    private DefaultMQPushConsumer consumer(String name, String nameServer) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group, null, strategy());
        consumer.setNamesrvAddr(nameServer);
        consumer.setClientIP(CLIENT_IP);
        consumer.setInstanceName(name);
        consumer.setPollNameServerInterval(ROUTE_POLL_MILLIS);
        consumer.setClientCallbackExecutorThreads(CALLBACK_THREADS);
        consumer.setConsumeFromWhere(
            ConsumeFromWhere.valueOf(System.getProperty("members.consumeFrom", "CONSUME_FROM_LAST_OFFSET")));
        if (Boolean.getBoolean("members.assigned")) {
            consumer.getClass().getMethod("setClientRebalance", boolean.class).invoke(consumer, false); // not in 4.9
        }
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                first.merge(context.getMessageQueue(), message.getQueueOffset(), Math::min);
                String broker = context.getMessageQueue().getBrokerName();
                received.computeIfAbsent(new String(message.getBody(), StandardCharsets.UTF_8), text -> new ConcurrentHashMap<>())
                    .computeIfAbsent(consumer.buildMQClientId(), id -> ConcurrentHashMap.newKeySet())
                    .add(new MessageQueue(message.getTopic(), broker, message.getQueueId()));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        for (String topic : topics) {
            consumer.subscribe(topic, "*");
        }
        return consumer;
    }

    private String leave(String name) {
        DefaultMQPushConsumer consumer = running.remove(name);
        consumer.shutdown();
        return consumer.buildMQClientId();
    }

    /** What each member holds at this moment. A queue it is giving up stays in the table for a while, dropped. */
    private Map<String, List<Map<String, Object>>> owned() {
        Map<String, Set<MessageQueue>> owned = new LinkedHashMap<>();
        running.values().forEach(consumer -> {
            Set<MessageQueue> queues = new LinkedHashSet<>();
            consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().forEach((queue, state) -> {
                if (!state.isDropped()) {
                    queues.add(queue);
                }
            });
            owned.put(consumer.buildMQClientId(), queues);
        });
        return rows(owned);
    }

    /** 4.9 has no such table. */
    private Map<String, Set<MessageQueue>> popped() throws ReflectiveOperationException {
        Map<String, Set<MessageQueue>> popped = new LinkedHashMap<>();
        for (DefaultMQPushConsumer consumer : running.values()) {
            RebalanceImpl rebalance = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl();
            Map<?, ?> table = (Map<?, ?>) RebalanceImpl.class.getMethod("getPopProcessQueueTable").invoke(rebalance);
            Set<MessageQueue> queues = new LinkedHashSet<>();
            table.keySet().forEach(queue -> queues.add((MessageQueue) queue));
            popped.put(consumer.buildMQClientId(), queues);
        }
        return popped;
    }

    /** The smallest offset of any message that a listener got, by queue. */
    private List<Map<String, Object>> first() {
        List<Map<String, Object>> rows = new ArrayList<>();
        first.forEach((queue, offset) -> {
            Map<String, Object> row = row(queue);
            row.put("offset", offset);
            rows.add(row);
        });
        return rows;
    }

    /** The client ids a broker would name to each member for each topic, were it to rebalance now; none if it fails. */
    private Map<String, Map<String, List<String>>> seen() {
        Map<String, Map<String, List<String>>> seen = new LinkedHashMap<>();
        running.values().forEach(consumer -> {
            Map<String, List<String>> byTopic = new LinkedHashMap<>();
            MQClientInstance client = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
            for (String topic : topics) {
                List<String> ids = client.findConsumerIdList(topic, group);
                byTopic.put(topic, ids == null ? List.of() : ids);
            }
            seen.put(consumer.buildMQClientId(), byTopic);
        });
        return seen;
    }

    private static Map<String, List<Map<String, Object>>> rows(Map<String, Set<MessageQueue>> byClientId) {
        Map<String, List<Map<String, Object>>> rows = new LinkedHashMap<>();
        byClientId.forEach((id, queues) -> rows.put(id, queues.stream().map(Members::row).collect(Collectors.toList())));
        return rows;
    }

    private static Map<String, Object> row(MessageQueue queue) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("topic", queue.getTopic());
        row.put("brokerName", queue.getBrokerName());
        row.put("queueId", queue.getQueueId());
        return row;
    }

    private AllocateMessageQueueStrategy strategy() {
        switch (strategy) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash();
            default:
                throw new IllegalArgumentException("no such strategy: " + strategy);
        }
    }
}
