import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * A producer that sends by key and a group that consumes in order, told line by line on standard input: {@code hold} and
 * {@code release} the producer, {@code send N} (while it is held: N messages of each key), {@code queues} (those that the
 * producer picks from), {@code owned} (those of the consumers), {@code without N} (the group consumes nothing of
 * queue N, -1 being none), {@code report}, {@code quit}. Each line but the last is answered by one line of JSON. The
 * producer begins held.
 *
 * <p>Arguments: NameServer, topic, group, number of consumers, number of keys, milliseconds between two messages, and
 * milliseconds that each message takes to consume.
 *
 * <p>A message's body is {@code KEY:NUMBER}, numbers of a key counting from 1. It is out of order when it comes the first
 * time and a larger number of its key has come before.
 */
public final class OrderedKeys {
    private static final int ROUTE_POLL_MILLIS = 2000;
    private static final int STARTS = 5;

    private final String topic;
    private final DefaultMQProducer producer = new DefaultMQProducer("keyed-producer");
    private final List<DefaultMQPushConsumer> consumers = new ArrayList<>();
    private final Set<String> received = new HashSet<>();
    private final Map<String, Integer> largest = new HashMap<>();
    private final Object gate = new Object();
    private final AtomicInteger withoutQueue = new AtomicInteger(-1);
    private final int keys;
    private boolean held = true;
    private int tried;
    private int sent;
    private int refused;
    private int outOfOrder;

    private OrderedKeys(String[] args) throws Exception {
        topic = args[1];
        keys = Integer.parseInt(args[4]);
        for (int i = 0; i < Integer.parseInt(args[3]); i++) {
            consumers.add(started(args[0], args[2], i, Long.parseLong(args[6])));
        }
        producer.setNamesrvAddr(args[0]);
        producer.setClientIP("127.0.0.1");
        producer.setInstanceName("keyed-producer");
        producer.setPollNameServerInterval(ROUTE_POLL_MILLIS);
        producer.start();
        Thread sending = new Thread(() -> sendForEver(Long.parseLong(args[5])), "sending");
        sending.setDaemon(true);
        sending.start();
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        OrderedKeys program = new OrderedKeys(args);
        say(Map.of("ready", args[1]));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            say(program.answer(line));
        }
        Runtime.getRuntime().halt(0);
    }

    private static void say(Map<String, ?> answer) {
        System.out.println(RemotingSerializable.toJson(answer, false));
    }

    private Map<String, ?> answer(String line) throws InterruptedException {
        String[] words = line.split(" ");
        synchronized (gate) { // no message is under way while the producer is held
            switch (words[0]) {
                case "hold":
                case "release":
                    held = words[0].equals("hold");
                    gate.notifyAll();
                    return Map.of("held", held);
                case "send":
                    for (int i = Integer.parseInt(words[1]) * keys; i > 0; i--) {
                        sendNext();
                    }
                    return Map.of("sent", sent);
                case "without":
                    withoutQueue.set(Integer.parseInt(words[1]));
                    return Map.of("without", withoutQueue.get());
                case "owned":
                    return Map.of("queues", consumers.stream().flatMap(this::owned).sorted().collect(Collectors.toList()));
                case "queues":
                    TopicPublishInfo known =
                        producer.getDefaultMQProducerImpl().getTopicPublishInfoTable().get(topic);
                    return Map.of("queues", known == null ? List.of() : known.getMessageQueueList().stream()
                        .map(queue -> queue.getBrokerName() + " " + queue.getQueueId()).collect(Collectors.toList()));
                case "report":
                    synchronized (received) {
                        return Map.of("sent", sent, "refused", refused, "received", received.size(), "outOfOrder", outOfOrder);
                    }
                default:
                    return Map.of("error", "no such command: " + line);
            }
        }
    }

    private void sendForEver(long pauseMillis) {
        try {
            while (true) {
                synchronized (gate) {
                    while (held) {
                        gate.wait();
                    }
                    sendNext();
                }
                Thread.sleep(pauseMillis);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private void sendNext() throws InterruptedException {
        String key = "order-" + tried % keys;
        String body = key + ":" + (tried / keys + 1);
        tried++;
        sendOne(key, new Message(topic, body.getBytes(StandardCharsets.UTF_8)));
    }

    private void sendOne(String key, Message message) throws InterruptedException {
        try {
            if (producer.send(message, new SelectMessageQueueByHash(), key).getSendStatus() == SendStatus.SEND_OK) {
                sent++;
                return;
            }
        } catch (InterruptedException ended) {
            throw ended;
        } catch (Exception problem) {
            System.out.println("not sent: " + problem);
        }
        refused++;
    }

    /** On a busy machine a client may not reach the NameServer in time. */
    private DefaultMQPushConsumer started(String nameServer, String group, int number, long takesMillis) throws Exception {
        for (int attempt = 1;; attempt++) {
            DefaultMQPushConsumer consumer = consumer(nameServer, group, number, takesMillis);
            try {
                consumer.start();
                return consumer;
            } catch (MQClientException | IllegalStateException notReached) {
                consumer.shutdown();
                if (attempt == STARTS) {
                    throw notReached;
                }
            }
        }
    }

    private DefaultMQPushConsumer consumer(String nameServer, String group, int number, long takesMillis) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setClientIP("127.0.0.1");
        consumer.setInstanceName("ordered-" + number);
        consumer.setPollNameServerInterval(ROUTE_POLL_MILLIS);
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            if (context.getMessageQueue().getQueueId() == withoutQueue.get()) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            messages.forEach(this::note);
            try {
                Thread.sleep(takesMillis);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.subscribe(topic, "*");
        return consumer;
    }

    private Stream<String> owned(DefaultMQPushConsumer consumer) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(topic))
            .map(queue -> queue.getBrokerName() + " " + queue.getQueueId());
    }

    private void note(MessageExt message) {
        String body = new String(message.getBody(), StandardCharsets.UTF_8);
        String key = body.substring(0, body.indexOf(':'));
        int number = Integer.parseInt(body.substring(key.length() + 1));
        synchronized (received) {
            if (!received.add(body)) {
                return;
            }
            if (number < largest.getOrDefault(key, 0)) {
                outOfOrder++;
            }
            largest.merge(key, number, Math::max);
        }
    }
}
