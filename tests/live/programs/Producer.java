import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * A real producer of one topic, told what to do line by line on standard input: {@code set NAME VALUE},
 * {@code index VALUE}, {@code forget}, {@code queues}, {@code faults}, {@code send COUNT PAUSE}, {@code stop},
 * {@code quit}. Each line but the last is answered by one line of JSON; each message, once it has come to an end, is
 * told in one more, {@code {"message": …}}.
 *
 * <p>Arguments: NameServer, topic, then {@code NAME=VALUE} for any property that {@code DefaultMQProducer} has a setter
 * for (those of the client itself act only here, not by {@code set}), {@code mode} (sync, async or oneway) and
 * {@code threads}, the number of threads that send.
 *
 * <p>The attempts of a message are what the SendMessageHook sees. It sees those of a sync send all; of an async send
 * only the first, since the retries happen below it. A message's body is its number.
 */
public final class Producer {
    private static final String HANDED_OVER = "HANDED_OVER";
    /** The callback of an async send comes before the client has noted how the broker did. */
    private static final long ASYNC_SETTLE_MILLIS = 20;

    private final String topic;
    private final DefaultMQProducer producer;
    private final Map<String, ?> faultItems;
    private final List<ExecutorService> senders = new ArrayList<>();
    private final ExecutorService asyncSender = thread("async-sender");
    private final ScheduledExecutorService settling = Executors.newSingleThreadScheduledExecutor();
    private final Map<Integer, Sending> underWay = new ConcurrentHashMap<>();
    private final AtomicInteger numbers = new AtomicInteger();
    private volatile boolean stopped;
    private volatile String mode = "sync";

    private Producer(String[] args) throws Exception {
        topic = args[1];
        producer = new DefaultMQProducer("producer-of-" + topic);
        producer.setNamesrvAddr(args[0]);
        producer.setAsyncSenderExecutor(asyncSender);
        int threads = 1;
        for (int i = 2; i < args.length; i++) {
            String[] option = args[i].split("=", 2);
            if (option[0].equals("threads")) {
                threads = Integer.parseInt(option[1]);
            } else {
                set(option[0], option[1]);
            }
        }
        for (int i = 1; i <= threads; i++) {
            senders.add(thread("sender-" + i));
        }
        DefaultMQProducerImpl impl = producer.getDefaultMQProducerImpl();
        impl.registerSendMessageHook(new Attempts());
        producer.start();
        Method route = DefaultMQProducerImpl.class.getDeclaredMethod("tryToFindTopicPublishInfo", String.class);
        route.setAccessible(true);
        route.invoke(impl, topic);
        faultItems = faultItems(impl);
    }

    public static void main(String[] args) throws Exception {
        Failure.endsTheProcess();
        Producer producer = new Producer(args);
        say(Map.of("ready", producer.topic));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            say(producer.answer(line.split(" ")));
        }
        System.exit(0);
    }

    private static synchronized void say(Map<String, ?> line) {
        System.out.println(RemotingSerializable.toJson(line, false));
    }

    private static ExecutorService thread(String name) {
        return Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    private Map<String, ?> answer(String[] command) {
        try {
            switch (command[0]) {
                case "set":
                    return Map.of("set", set(command[1], command[2]));
                case "index":
                    return Map.of("index", presetIndex(Integer.parseInt(command[1])));
                case "forget":
                    faultItems.clear();
                    return Map.of("forgot", true);
                case "queues":
                    return Map.of("queues", queues());
                case "faults":
                    return Map.of("faults", faults());
                case "send":
                    return Map.of("sending", send(Integer.parseInt(command[1]), Long.parseLong(command[2])));
                case "stop":
                    return Map.of("stopped", stop());
                default:
                    return Map.of("error", "no such command: " + command[0]);
            }
        } catch (Exception problem) {
            return Map.of("error", problem.toString());
        }
    }

    // -- what is set --------------------------------------------------------------------------------------------------

    private String set(String name, String value) throws Exception {
        if (name.equals("mode")) {
            mode = value;
            return name;
        }
        String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        for (Method method : DefaultMQProducer.class.getMethods()) {
            if (method.getName().equals(setter) && method.getParameterCount() == 1) {
                method.invoke(producer, parsed(value, method.getParameterTypes()[0]));
                return name;
            }
        }
        throw new IllegalArgumentException("this version has no " + setter);
    }

    private static Object parsed(String value, Class<?> type) {
        if (type == int.class) {
            return Integer.valueOf(value);
        }
        if (type == long.class) {
            return Long.valueOf(value);
        }
        return type == boolean.class ? (Object) Boolean.valueOf(value) : value;
    }

    /** Makes the next pick of every sending thread the one after this index. */
    private int presetIndex(int value) throws Exception {
        List<ExecutorService> picking = new ArrayList<>(senders);
        picking.add(asyncSender);
        for (ExecutorService thread : picking) {
            in(thread, () -> {
                index().set(value);
                return null;
            });
        }
        return value;
    }

    private static <T> T in(ExecutorService thread, Callable<T> task) throws Exception {
        return thread.submit(task).get();
    }

    // -- what is read -------------------------------------------------------------------------------------------------

    private TopicPublishInfo publishInfo() {
        return producer.getDefaultMQProducerImpl().getTopicPublishInfoTable().get(topic);
    }

    /** The counter of the round robin: one per thread, and a new one whenever the route has changed. */
    @SuppressWarnings("unchecked")
    private ThreadLocal<Integer> index() throws Exception {
        return (ThreadLocal<Integer>) field(publishInfo().getSendWhichQueue(), "threadLocalIndex");
    }

    @SuppressWarnings("unchecked")
    private static Map<String, ?> faultItems(DefaultMQProducerImpl impl) throws Exception {
        Object tolerance = field(field(impl, "mqFaultStrategy"), "latencyFaultTolerance");
        return (Map<String, ?>) field(tolerance, "faultItemTable");
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private List<Map<String, Object>> queues() {
        List<Map<String, Object>> rows = new ArrayList<>();
        for (MessageQueue queue : publishInfo().getMessageQueueList()) {
            rows.add(row(queue));
        }
        return rows;
    }

    private static Map<String, Object> row(MessageQueue queue) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("brokerName", queue.getBrokerName());
        row.put("queueId", queue.getQueueId());
        return row;
    }

    /** What the fault strategy holds of each broker; version 4 does not have the flag. */
    private List<Map<String, Object>> faults() throws Exception {
        List<Map<String, Object>> rows = new ArrayList<>();
        for (Map.Entry<String, ?> entry : new TreeMap<>(faultItems).entrySet()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("brokerName", entry.getKey());
            row.put("currentLatency", field(entry.getValue(), "currentLatency"));
            row.put("startTimestamp", field(entry.getValue(), "startTimestamp"));
            try {
                row.put("reachable", field(entry.getValue(), "reachableFlag"));
            } catch (NoSuchFieldException version4) {
                row.put("reachable", null);
            }
            rows.add(row);
        }
        return rows;
    }

    // -- sending ------------------------------------------------------------------------------------------------------

    private int send(int count, long pauseMillis) {
        stopped = false;
        for (ExecutorService sender : senders) {
            sender.submit(() -> {
                for (int i = 0; i < count && !stopped; i++) {
                    if (i > 0) {
                        TimeUnit.MILLISECONDS.sleep(pauseMillis);
                    }
                    sendOne(numbers.getAndIncrement());
                }
                return null;
            });
        }
        return count * senders.size();
    }

    /** Ends all that is being sent; the number of messages that have been sent so far. */
    private int stop() throws Exception {
        stopped = true;
        for (ExecutorService sender : senders) {
            in(sender, () -> null);
        }
        return numbers.get();
    }

    private void sendOne(int number) {
        Message message = new Message(topic, Integer.toString(number).getBytes());
        Sending sending = new Sending(number);
        underWay.put(number, sending);
        try {
            switch (mode) {
                case "sync":
                    sending.end(producer.send(message), null);
                    break;
                case "async":
                    producer.send(message, sending);
                    break;
                case "oneway":
                    producer.sendOneway(message);
                    sending.end(null, null);
                    break;
                default:
                    throw new IllegalStateException("no such mode: " + mode);
            }
        } catch (Exception problem) {
            sending.end(null, problem);
        }
    }

    private static void putOutcome(Map<String, Object> row, SendResult result, Throwable problem) {
        if (problem == null) {
            row.put("outcome", result == null ? HANDED_OVER : result.getSendStatus().name());
            return;
        }
        row.put("outcome", problem.getClass().getSimpleName());
        row.put("text", firstLine(problem.getMessage()));
        if (problem instanceof MQBrokerException) {
            row.put("responseCode", ((MQBrokerException) problem).getResponseCode());
        } else if (problem instanceof MQClientException) {
            row.put("responseCode", ((MQClientException) problem).getResponseCode());
        }
        if (problem.getCause() != null) {
            row.put("cause", problem.getCause().getClass().getSimpleName());
        }
    }

    private static String firstLine(String text) {
        return text == null ? "" : text.split("\n", 2)[0];
    }

    /** One message on its way, from the call until the call, or the callback, tells how it ended. */
    private final class Sending implements SendCallback {
        private final int number;
        private final long began = System.currentTimeMillis();
        private final List<Map<String, Object>> attempts = new ArrayList<>();

        Sending(int number) {
            this.number = number;
        }

        @Override
        public void onSuccess(SendResult result) {
            endAsync(result, null);
        }

        @Override
        public void onException(Throwable problem) {
            endAsync(null, problem);
        }

        private void endAsync(SendResult result, Throwable problem) {
            long ended = System.currentTimeMillis();
            String thread = Thread.currentThread().getName();
            settling.schedule(
                () -> tell(result, problem, ended, thread), ASYNC_SETTLE_MILLIS, TimeUnit.MILLISECONDS);
        }

        private void end(SendResult result, Throwable problem) {
            tell(result, problem, System.currentTimeMillis(), Thread.currentThread().getName());
        }

        private void tell(SendResult result, Throwable problem, long ended, String thread) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("number", number);
            row.put("thread", thread);
            row.put("beganMs", began);
            row.put("tookMs", ended - began);
            putOutcome(row, result, problem);
            synchronized (attempts) {
                row.put("attempts", new ArrayList<>(attempts));
            }
            try {
                row.put("faults", faults());
                row.put("index", index().get());
            } catch (Exception unreadable) {
                row.put("unreadable", unreadable.toString());
            }
            underWay.remove(number);
            say(Map.of("message", row));
        }
    }

    /** Notes each attempt: what the fault strategy held, and the thread's index, just after the queue was picked. */
    private final class Attempts implements SendMessageHook {
        @Override
        public String hookName() {
            return "attempts";
        }

        @Override
        public void sendMessageBefore(SendMessageContext context) {
            Map<String, Object> row = row(context.getMq());
            row.put("thread", Thread.currentThread().getName());
            try {
                row.put("index", index().get());
                row.put("faults", faults());
            } catch (Exception unreadable) {
                row.put("unreadable", unreadable.toString());
            }
            List<Map<String, Object>> attempts = of(context).attempts;
            synchronized (attempts) {
                attempts.add(row);
            }
            context.setMqTraceContext(row);
            row.put("beganMs", System.currentTimeMillis());
        }

        /** An async attempt ends twice: when it is handed over, and when its answer is there; the order may be any. */
        @Override
        @SuppressWarnings("unchecked")
        public void sendMessageAfter(SendMessageContext context) {
            long ended = System.currentTimeMillis();
            Map<String, Object> row = (Map<String, Object>) context.getMqTraceContext();
            synchronized (row) {
                if (row.containsKey("outcome") && context.getException() == null && context.getSendResult() == null) {
                    return;
                }
                row.put("tookMs", ended - (Long) row.get("beganMs"));
                putOutcome(row, context.getSendResult(), context.getException());
            }
        }

        private Sending of(SendMessageContext context) {
            return underWay.get(Integer.parseInt(new String(context.getMessage().getBody())));
        }
    }
}
