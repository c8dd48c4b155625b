import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.common.ThreadLocalIndex;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's own producer classes, asked line by line on standard input; each line is answered by one line. Fields are
 * separated by tabs, an empty field stands for null. Whatever moved or changed its shape between 4.7.1 and 5.5.0 is
 * found by reflection.
 *
 * <ul>
 * <li>{@code abilities}: which of "reset" and "reachable" this version has</li>
 * <li>{@code defaults}: names and default values of a new producer, by turns</li>
 * <li>{@code start ON INDEX WORST}: a new topic and a new fault strategy; the values of the two counters</li>
 * <li>{@code queue TOPIC BROKER ID}: one more queue of the publish list</li>
 * <li>{@code route BROKER WRITE_QUEUES PERM}: one more queue data of the route</li>
 * <li>{@code pick AT LAST SEED}: the broker and the id picked then, or "!" and an exception's simple name</li>
 * <li>{@code update BROKER LATENCY ISOLATION REACHABLE}: at the time of the pick before it</li>
 * <li>{@code faults}: name, latency, start and (if there is one) the reachable flag of each fault item, by name</li>
 * <li>{@code queues}: topic, broker and id of each queue of the publish list</li>
 * <li>{@code indexes}: the values of the two counters</li>
 * </ul>
 */
public final class Picks {
    private static final String[] DEFAULTS = {
        "retryTimesWhenSendFailed", "retryTimesWhenSendAsyncFailed", "sendMsgTimeout", "sendMsgMaxTimeoutPerRequest",
        "retryAnotherBrokerWhenNotStoreOK", "defaultTopicQueueNums", "createTopicKey", "maxMessageSize",
        "sendLatencyEnable", "startDetectorEnable", "detectTimeout", "detectInterval", "vipChannelEnabled",
        "pollNameServerInterval", "retryResponseCodes",
    };
    private static final Method SELECT = method(MQFaultStrategy.class, "selectOneMessageQueue");
    private static final Method UPDATE = method(MQFaultStrategy.class, "updateFaultItem");

    private TopicPublishInfo topic;
    private MQFaultStrategy strategy;
    private List<Object> route;

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Picks picks = new Picks();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(picks.answer(line.split("\t", -1)));
        }
        System.exit(0);
    }

    private String answer(String[] line) throws Exception {
        switch (line[0]) {
            case "abilities":
                return (SELECT.getParameterCount() == 3 ? "reset" : "") + "\t"
                    + (UPDATE.getParameterCount() == 4 ? "reachable" : "");
            case "defaults":
                return defaults();
            case "start":
                return start(line[1].equals("true"), Integer.parseInt(line[2]), Integer.parseInt(line[3]));
            case "queue":
                topic.getMessageQueueList().add(new MessageQueue(line[1], line[2], Integer.parseInt(line[3])));
                return "";
            case "route":
                route.add(queueData(line[1], Integer.parseInt(line[2]), Integer.parseInt(line[3])));
                return "";
            case "pick":
                return pick(Long.parseLong(line[1]), orNull(line[2]), orNull(line[3]));
            case "update":
                return update(line[1], Long.parseLong(line[2]), line[3].equals("true"), line[4].equals("true"));
            case "faults":
                return faults();
            case "queues":
                return queues();
            case "indexes":
                return value(topic.getSendWhichQueue()).get() + "\t" + value(worst()).get();
            default:
                throw new IllegalArgumentException(line[0]);
        }
    }

    private String start(boolean enabled, int index, int worst) throws Exception {
        topic = new TopicPublishInfo();
        topic.setMessageQueueList(new ArrayList<>());
        topic.setHaveTopicRouterInfo(true);
        route = new ArrayList<>();
        Method setRoute = method(TopicPublishInfo.class, "setTopicRouteData");
        Object data = setRoute.getParameterTypes()[0].getConstructor().newInstance();
        method(data.getClass(), "setQueueDatas").invoke(data, route);
        setRoute.invoke(topic, data);
        strategy = newStrategy();
        strategy.setSendLatencyFaultEnable(enabled);
        value(topic.getSendWhichQueue()).set(index);
        value(worst()).set(worst);
        return "";
    }

    /** Without arguments up to 5.1.3; later with what the detector needs, which is never started here. */
    private static MQFaultStrategy newStrategy() throws Exception {
        for (Constructor<?> constructor : MQFaultStrategy.class.getConstructors()) {
            switch (constructor.getParameterCount()) {
                case 0:
                    return (MQFaultStrategy) constructor.newInstance();
                case 3:
                    return (MQFaultStrategy) constructor.newInstance(new ClientConfig(), null, null);
                default:
            }
        }
        throw new NoSuchMethodException("no known constructor of MQFaultStrategy");
    }

    private static Object queueData(String broker, int writeQueues, int perm) throws Exception {
        Class<?> routeClass = method(TopicPublishInfo.class, "setTopicRouteData").getParameterTypes()[0];
        Class<?> dataClass = Class.forName(routeClass.getPackageName() + ".QueueData");
        Object data = dataClass.getConstructor().newInstance();
        method(dataClass, "setBrokerName").invoke(data, broker);
        method(dataClass, "setReadQueueNums").invoke(data, writeQueues);
        method(dataClass, "setWriteQueueNums").invoke(data, writeQueues);
        method(dataClass, "setPerm").invoke(data, perm);
        return data;
    }

    private String pick(long at, String last, String seed) throws Exception {
        VirtualClock.now = at;
        Object[] arguments = {topic, last};
        if (SELECT.getParameterCount() == 3) {
            if (seed != null) {
                ((Random) get(topic.getSendWhichQueue(), "random")).setSeed(Long.parseLong(seed));
            }
            arguments = new Object[] {topic, last, seed != null};
        }
        try {
            MessageQueue picked = (MessageQueue) SELECT.invoke(strategy, arguments);
            return picked == null ? "" : picked.getBrokerName() + "\t" + picked.getQueueId();
        } catch (InvocationTargetException thrown) {
            return "!" + thrown.getCause().getClass().getSimpleName();
        }
    }

    private String update(String broker, long latency, boolean isolation, boolean reachable) throws Exception {
        if (UPDATE.getParameterCount() == 4) {
            UPDATE.invoke(strategy, broker, latency, isolation, reachable);
        } else {
            UPDATE.invoke(strategy, broker, latency, isolation);
        }
        return "";
    }

    private String faults() throws Exception {
        List<String> fields = new ArrayList<>();
        Map<?, ?> items = (Map<?, ?>) get(get(strategy, "latencyFaultTolerance"), "faultItemTable");
        for (Map.Entry<?, ?> entry : new TreeMap<>(items).entrySet()) {
            Object item = entry.getValue();
            fields.add(entry.getKey().toString());
            fields.add(get(item, "currentLatency").toString());
            fields.add(get(item, "startTimestamp").toString());
            if (UPDATE.getParameterCount() == 4) {
                fields.add(get(item, "reachableFlag").toString());
            }
        }
        return String.join("\t", fields);
    }

    private String queues() {
        List<String> fields = new ArrayList<>();
        for (MessageQueue queue : topic.getMessageQueueList()) {
            fields.add(queue.getTopic());
            fields.add(queue.getBrokerName());
            fields.add(Integer.toString(queue.getQueueId()));
        }
        return String.join("\t", fields);
    }

    private static String defaults() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("oracle");
        List<String> fields = new ArrayList<>();
        for (String name : DEFAULTS) {
            Field field = field(DefaultMQProducer.class, name);
            if (field != null) {
                fields.add(name);
                fields.add(text(field.get(producer)));
            }
        }
        for (String name : new String[] {"LatencyMax", "NotAvailableDuration"}) {
            fields.add(Character.toLowerCase(name.charAt(0)) + name.substring(1));
            fields.add(text(method(DefaultMQProducer.class, "get" + name).invoke(producer)));
        }
        return String.join("\t", fields);
    }

    /** A value as JSON has it; sets of numbers in order. */
    private static String text(Object value) {
        if (value instanceof String) {
            return '"' + (String) value + '"';
        }
        if (value instanceof long[]) {
            return java.util.Arrays.toString((long[]) value);
        }
        return value instanceof Collection ? new TreeSet<>((Collection<?>) value).toString() : String.valueOf(value);
    }

    /** The second counter, which the fault table keeps: named whichItemWorst, and in 5.1.0 to 5.1.3 randomItem. */
    private ThreadLocalIndex worst() throws Exception {
        Object table = get(strategy, "latencyFaultTolerance");
        for (Field field : table.getClass().getDeclaredFields()) {
            if (field.getType() == ThreadLocalIndex.class) {
                return (ThreadLocalIndex) get(table, field.getName());
            }
        }
        throw new NoSuchFieldException("no ThreadLocalIndex in " + table.getClass());
    }

    @SuppressWarnings("unchecked")
    private static ThreadLocal<Integer> value(ThreadLocalIndex index) throws Exception {
        return (ThreadLocal<Integer>) get(index, "threadLocalIndex");
    }

    private static String orNull(String field) {
        return field.isEmpty() ? null : field;
    }

    private static Object get(Object object, String name) throws Exception {
        Field field = field(object.getClass(), name);
        if (field == null) {
            throw new NoSuchFieldException(name + " in " + object.getClass());
        }
        return field.get(object);
    }

    /** A field of a class or of one above it; null if there is none. */
    private static Field field(Class<?> type, String name) {
        for (Class<?> here = type; here != null; here = here.getSuperclass()) {
            for (Field field : here.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        return null;
    }

    /** The public method of a name that has only one. */
    private static Method method(Class<?> type, String name) {
        Method found = null;
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name) && !method.isBridge()) {
                if (found != null) {
                    throw new IllegalStateException("more than one " + name + " in " + type);
                }
                found = method;
            }
        }
        if (found == null) {
            throw new IllegalStateException("no " + name + " in " + type);
        }
        return found;
    }
}
