import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Topics that get messages at known rates, and groups of push consumers that need a known time for each call of their
 * listener, told line by line on standard input: {@code produce TOPIC RATE,RATE,…} (messages per second of each queue, as
 * clients sort queues), {@code start GROUP CONSUMERS KEY=VALUE…}, {@code stop GROUP}, {@code quit}. Each line but the last
 * is answered by one line of JSON; {@code start} and {@code stop} are answered at once, since groups do not wait for each
 * other.
 *
 * <p>Arguments: the NameServer, and the folder of the logs. Keys of {@code start}: {@code topics} joined by commas,
 * {@code threads}, {@code batch} (messages of a call), {@code sleepMs} of a call, {@code orderly=true}. Consumer {@code N} of a
 * group has the client ID {@code 127.0.0.1@GROUP-N}.
 *
 * <p>The log of a group, {@code GROUP.log}, has a line for each message of each call: topic, broker, queue, offset, when the
 * broker stored it, when the call began and when it ended, in epoch milliseconds, and the consumer's number. A line that
 * begins with {@code #} says when consumers were told to start, had started, and had left.
 */
public final class Backlogs {
    private static final String CLIENT_IP = "127.0.0.1";
    private static final int SENDING_THREADS = 6;
    /** 30 s when not set: how late a client would learn of its own retry topic, which the first heartbeat creates. */
    private static final int ROUTE_POLL_MILLIS = 2000;
    /**
     * 30 s when not set. A client's first rebalance and the first heartbeat of its timer are both due 1 s after its creation.
     * A rebalance raises the version of the subscription, and skips its own heartbeat while another one is on its way. Brokers
     * that got the older version then refuse the consumer's pulls until the next heartbeat.
     */
    private static final int HEARTBEAT_MILLIS = 2000;

    private final String nameServer;
    private final Path folder;
    private final DefaultMQProducer producer = new DefaultMQProducer("producer-of-backlogs");
    private final ScheduledExecutorService sending = Executors.newScheduledThreadPool(SENDING_THREADS);
    private final Map<String, List<Future<?>>> sends = new HashMap<>();
    private final Map<String, Group> groups = new HashMap<>();

    private Backlogs(String nameServer, Path folder) throws Exception {
        this.nameServer = nameServer;
        this.folder = folder;
        producer.setNamesrvAddr(nameServer);
        producer.setClientIP(CLIENT_IP);
        producer.setInstanceName("producer");
        producer.start();
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        Backlogs backlogs = new Backlogs(args[0], Path.of(args[1]));
        say(Map.of("ready", args[0]));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            say(backlogs.answer(line.split(" ")));
        }
        Runtime.getRuntime().halt(0);
    }

    private static void say(Map<String, ?> answer) {
        System.out.println(RemotingSerializable.toJson(answer, false));
    }

    private Map<String, ?> answer(String[] command) {
        try {
            switch (command[0]) {
                case "produce":
                    return Map.of("producing", produce(command[1], command[2].split(",")));
                case "quiet":
                    sends.remove(command[1]).forEach(send -> send.cancel(false));
                    return Map.of("quiet", command[1]);
                case "start":
                    group(command[1]).start(Integer.parseInt(command[2]), options(command));
                    return Map.of("starting", command[1]);
                case "stop":
                    group(command[1]).stop();
                    return Map.of("stopping", command[1]);
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

    private Group group(String name) throws IOException {
        if (!groups.containsKey(name)) {
            groups.put(name, new Group(name));
        }
        return groups.get(name);
    }

    // -- topics -------------------------------------------------------------------------------------------------------

    private int produce(String topic, String[] rates) throws Exception {
        List<MessageQueue> queues = new ArrayList<>(producer.fetchPublishMessageQueues(topic));
        Collections.sort(queues);
        List<Future<?>> own = sends.computeIfAbsent(topic, name -> new ArrayList<>());
        for (int i = 0; i < rates.length; i++) {
            double perSecond = Double.parseDouble(rates[i]);
            if (perSecond > 0) {
                MessageQueue queue = queues.get(i);
                long periodUs = Math.round(1e6 / perSecond);
                long delayUs = periodUs * i / rates.length;
                own.add(sending.scheduleAtFixedRate(() -> send(queue), delayUs, periodUs, TimeUnit.MICROSECONDS));
            }
        }
        return own.size();
    }

    /** A send that a busy broker refuses is no reason to stop. */
    private void send(MessageQueue queue) {
        try {
            producer.send(new Message(queue.getTopic(), "message".getBytes(StandardCharsets.UTF_8)), queue);
        } catch (Exception refused) {
            System.out.println("not sent: " + refused);
        }
    }

    // -- groups -------------------------------------------------------------------------------------------------------

    private final class Group {
        private final String name;
        private final BufferedWriter log;
        private final ExecutorService orders = Executors.newSingleThreadExecutor();
        private final Map<Integer, DefaultMQPushConsumer> running = new ConcurrentHashMap<>();

        Group(String name) throws IOException {
            this.name = name;
            this.log = Files.newBufferedWriter(folder.resolve(name + ".log"));
        }

        void start(int consumers, Map<String, String> options) {
            orders.execute(() -> {
                write("# starting " + System.currentTimeMillis());
                for (int number = 0; number < consumers; number++) {
                    try {
                        running.put(number, started(number, options));
                    } catch (Exception problem) {
                        throw new IllegalStateException(problem);
                    }
                }
                write("# started " + System.currentTimeMillis());
            });
        }

        void stop() {
            orders.execute(() -> {
                write("# stopping " + System.currentTimeMillis());
                running.values().forEach(DefaultMQPushConsumer::shutdown);
                running.clear();
                write("# stopped " + System.currentTimeMillis());
                flush();
            });
        }

        private DefaultMQPushConsumer started(int number, Map<String, String> options) throws Exception {
            DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(name);
            consumer.setNamesrvAddr(nameServer);
            consumer.setClientIP(CLIENT_IP);
            consumer.setInstanceName(name + "-" + number);
            consumer.setPollNameServerInterval(ROUTE_POLL_MILLIS);
            consumer.setHeartbeatBrokerInterval(HEARTBEAT_MILLIS);
            int threads = Integer.parseInt(options.get("threads"));
            consumer.setConsumeThreadMin(threads);
            consumer.setConsumeThreadMax(threads);
            consumer.setConsumeMessageBatchMaxSize(Integer.parseInt(options.getOrDefault("batch", "1")));
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            long sleepMs = Long.parseLong(options.get("sleepMs"));
            if (options.containsKey("orderly")) {
                consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                    consume(number, messages, context.getMessageQueue(), sleepMs);
                    return ConsumeOrderlyStatus.SUCCESS;
                });
            } else {
                consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    consume(number, messages, context.getMessageQueue(), sleepMs);
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
            }
            for (String topic : options.get("topics").split(",")) {
                consumer.subscribe(topic, "*");
            }
            consumer.start();
            return consumer;
        }

        private void consume(int number, List<MessageExt> messages, MessageQueue queue, long sleepMs) {
            long began = System.currentTimeMillis();
            try {
                Thread.sleep(sleepMs);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
                return;
            }
            long ended = System.currentTimeMillis();
            StringBuilder lines = new StringBuilder();
            for (MessageExt message : messages) {
                lines.append(queue.getTopic()).append(' ').append(queue.getBrokerName()).append(' ')
                    .append(queue.getQueueId()).append(' ').append(message.getQueueOffset()).append(' ')
                    .append(message.getStoreTimestamp()).append(' ').append(began).append(' ').append(ended).append(' ')
                    .append(number).append('\n');
            }
            write(lines.toString().stripTrailing());
        }

        private void write(String lines) {
            try {
                synchronized (log) {
                    log.write(lines);
                    log.newLine();
                }
            } catch (IOException problem) {
                throw new IllegalStateException(problem);
            }
        }

        private void flush() {
            try {
                synchronized (log) {
                    log.flush();
                }
            } catch (IOException problem) {
                throw new IllegalStateException(problem);
            }
        }
    }
}
