import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Push or lite pull consumers with RocketMQ's own timers, and a log of when each takes a queue into its process-queue table and when
 * it drops it there: one line of JSON a change, in the order of time.
 *
 * <p>Told what to do on standard input: {@code join NAME}, {@code leave NAME}, {@code quit}; its end means {@code quit}.
 * Arguments: NameServer, group, {@code orderly}, {@code concurrent} or {@code lite-pull}, topics joined by commas. Member {@code NAME} has
 * the client id {@code CLIENT_IP@NAME} and the strategy AVG.
 *
 * <p>Each line has {@code atUs} (epoch microseconds), {@code clientId} and {@code what}: {@code starting} and
 * {@code started}, {@code stopping} and {@code stopped} around the calls; {@code gained} and {@code lost} with a queue,
 * and {@code pulled} before its first pull; {@code request} and {@code answer} with {@code code} and the broker's
 * {@code address}, of heartbeats, member lists and locks; {@code notice} when a broker says that the members changed.
 */
public final class RebalanceLog {
    private static final String CLIENT_IP = "127.0.0.1";
    private static final long SAMPLING_MILLIS = 10;
    private static final long WARM_UP_MILLIS = 2500;
    private static final Set<Integer> PULL_MESSAGE = Set.of(11, 361);
    private static final long POLL_MILLIS = 100;
    private static final int NOTIFY_CONSUMER_IDS_CHANGED = 40;
    /** Heartbeat, list of a group's members, lock. */
    private static final Set<Integer> RECORDED = Set.of(34, 38, 41);

    private final String nameServer;
    private final String listener;
    private final String[] topics;
    private final Map<String, Member> running = new TreeMap<>();

    private RebalanceLog(String[] args) {
        nameServer = args[0];
        listener = args[2];
        topics = args[3].split(",");
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        RebalanceLog log = new RebalanceLog(args);
        log.warmUp(args[1] + "-warm-up");
        System.out.println("{\"ready\":true}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            String[] command = line.split(" ", 2);
            if (command[0].equals("join")) {
                log.running.put(command[1], log.new Member(args[1], command[1], true));
                log.running.get(command[1]).start();
            } else if (command[0].equals("leave")) {
                log.running.remove(command[1]).shutdown();
            } else {
                throw new IllegalArgumentException("no such command: " + line);
            }
        }
        for (String name : List.copyOf(log.running.keySet())) {
            log.running.remove(name).shutdown();
        }
        System.exit(0);
    }

    /** The first member of a JVM waits for classes to be loaded; nobody asks how long this one took. */
    private void warmUp(String group) throws Exception {
        Member member = new Member(group, "warm-up-" + ProcessHandle.current().pid(), false);
        member.start();
        Thread.sleep(WARM_UP_MILLIS);
        member.shutdown();
    }

    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    /** One consumer, its sampling thread, and the hook that sees its requests. */
    private final class Member implements RPCHook {
        /** One of the two is null. */
        private final DefaultMQPushConsumer push;
        private final DefaultLitePullConsumer lite;
        private final String clientId;
        private final Map<MessageQueue, ProcessQueue> owned = new HashMap<>();
        /** Broker's address, topic and queue id of what has been pulled since the member took it. */
        private final Set<String> pulled = ConcurrentHashMap.newKeySet();
        private final Queue<Map<String, Object>> lines = new ConcurrentLinkedQueue<>();
        private final boolean isHeard;
        private final Thread sampling = new Thread(this::sample, "sampling");
        private volatile boolean isOver;

        Member(String group, String name, boolean isHeard) throws Exception {
            this.isHeard = isHeard;
            boolean pulls = listener.equals("lite-pull");
            push = pulls ? null : new DefaultMQPushConsumer(group, this, new AllocateMessageQueueAveragely());
            lite = pulls ? new DefaultLitePullConsumer(group, this) : null;
            ClientConfig consumer = pulls ? lite : push;
            consumer.setNamesrvAddr(nameServer);
            consumer.setClientIP(CLIENT_IP);
            consumer.setInstanceName(name);
            clientId = consumer.buildMQClientId();
            if (listener.equals("orderly")) {
                push.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                    ConsumeOrderlyStatus.SUCCESS);
            } else if (!pulls) {
                push.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                    ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
            }
            for (String topic : topics) {
                if (pulls) {
                    lite.subscribe(topic, "*");
                } else {
                    push.subscribe(topic, "*");
                }
            }
        }

        private void startConsumer() throws Exception {
            if (lite == null) {
                push.start();
                return;
            }
            lite.start();
            Thread polling = new Thread(() -> {
                while (!isOver) {
                    lite.poll(POLL_MILLIS);
                }
            }, "polling");
            polling.setDaemon(true);
            polling.start();
        }

        private RebalanceImpl rebalance() {
            if (lite == null) {
                return push.getDefaultMQPushConsumerImpl().getRebalanceImpl();
            }
            return (RebalanceImpl) fieldOf(fieldOf(lite, "defaultLitePullConsumerImpl"), "rebalanceImpl");
        }

        private Object fieldOf(Object owner, String name) {
            try {
                Field field = owner.getClass().getDeclaredField(name);
                field.setAccessible(true);
                return field.get(owner);
            } catch (ReflectiveOperationException missing) {
                throw new IllegalStateException(missing);
            }
        }

        void start() throws Exception {
            sampling.setPriority(Thread.MAX_PRIORITY);
            sampling.start();
            add("starting");
            startConsumer();
            add("started");
        }

        void shutdown() throws Exception {
            add("stopping");
            if (lite == null) {
                push.shutdown();
                isOver = true;
            } else {
                isOver = true; // a poll of a consumer that has shut down throws
                lite.shutdown();
            }
            sampling.join();
            add("stopped");
            print();
        }

        private void sample() {
            try {
                while (!isOver) {
                    look();
                    print();
                    Thread.sleep(SAMPLING_MILLIS);
                }
                look();
                print();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        /** A queue that was dropped and taken again between two looks has another process queue. */
        private void look() {
            Map<MessageQueue, ProcessQueue> table =
                rebalance().getProcessQueueTable();
            owned.entrySet().removeIf(entry -> {
                boolean isLost = entry.getValue().isDropped() || table.get(entry.getKey()) != entry.getValue();
                if (isLost) {
                    pulled.remove(key(entry.getKey()));
                    addQueue("lost", entry.getKey());
                }
                return isLost;
            });
            table.forEach((queue, state) -> {
                if (!state.isDropped() && owned.putIfAbsent(queue, state) == null) {
                    addQueue("gained", queue);
                }
            });
        }

        @Override
        public void doBeforeRequest(String remoteAddr, RemotingCommand request) {
            int code = request.getCode();
            if (code == NOTIFY_CONSUMER_IDS_CHANGED) {
                addRemote("notice", remoteAddr, Map.of());
            } else if (PULL_MESSAGE.contains(code)) {
                request.makeCustomHeaderToNet();
                String topic = request.getExtFields().get("topic");
                Integer queueId = Integer.valueOf(request.getExtFields().get("queueId"));
                if (pulled.add(key(remoteAddr, topic, queueId.toString()))) {
                    addRemote("pulled", remoteAddr, Map.of("topic", topic, "queueId", queueId));
                }
            } else if (RECORDED.contains(code)) {
                addRemote("request", remoteAddr, Map.of("code", code));
            }
        }

        @Override
        public void doAfterResponse(String remoteAddr, RemotingCommand request, RemotingCommand response) {
            if (response != null && RECORDED.contains(request.getCode())) {
                addRemote("answer", remoteAddr, Map.of("code", request.getCode()));
            }
        }

        private void addRemote(String what, String address, Map<String, ?> more) {
            Map<String, Object> line = line(what);
            line.put("address", address);
            line.putAll(more);
            lines.add(line);
        }

        private void addQueue(String what, MessageQueue queue) {
            Map<String, Object> line = line(what);
            line.put("topic", queue.getTopic());
            line.put("brokerName", queue.getBrokerName());
            line.put("queueId", queue.getQueueId());
            lines.add(line);
        }

        private void add(String what) {
            lines.add(line(what));
        }

        private Map<String, Object> line(String what) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("atUs", now());
            line.put("clientId", clientId);
            line.put("what", what);
            return line;
        }

        private synchronized void print() {
            for (Map<String, Object> line = lines.poll(); line != null; line = lines.poll()) {
                if (isHeard) {
                    System.out.println(RemotingSerializable.toJson(line, false));
                }
            }
        }

        /** As the hook sees it, which knows addresses only. */
        private String key(MessageQueue queue) {
            String address = rebalance().getmQClientFactory().findBrokerAddressInPublish(queue.getBrokerName());
            return key(address, queue.getTopic(), String.valueOf(queue.getQueueId()));
        }

        private String key(String... parts) {
            return String.join(" ", parts);
        }
    }
}
