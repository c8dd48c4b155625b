import apache.rocketmq.v2.Message;
import apache.rocketmq.v2.SendMessageRequest;
import apache.rocketmq.v2.SystemProperties;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.proxy.common.ProxyContext;
import org.apache.rocketmq.proxy.processor.QueueSelector;
import org.apache.rocketmq.proxy.service.route.AddressableMessageQueue;
import org.apache.rocketmq.proxy.service.route.MessageQueueView;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;

/**
 * Answers on stdout where the Proxy stores a message of a message group, as broker:id; see
 * {@code tests/oracle/producers/questions.py}.
 */
public final class ProxyPicks {
    private static final int READ_WRITE = 6;

    private ProxyPicks() {
    }

    public static void main(String[] args) throws Exception {
        Class<?> type =
            Class.forName("org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity$SendMessageQueueSelector");
        Constructor<?> made = type.getDeclaredConstructor(SendMessageRequest.class);
        made.setAccessible(true);
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            MessageQueueView view = new MessageQueueView("T", route(fields[2]), null);
            SystemProperties group = SystemProperties.newBuilder().setMessageGroup(text(fields[1])).build();
            SendMessageRequest request = SendMessageRequest.newBuilder()
                .addMessages(Message.newBuilder().setSystemProperties(group)).build();
            AddressableMessageQueue picked =
                ((QueueSelector) made.newInstance(request)).select(ProxyContext.create(), view);
            out.println(picked.getBrokerName() + ":" + picked.getQueueId());
        }
        out.flush();
        System.exit(0);
    }

    /** Queues are written as broker:id,broker:id; of each broker those from 0 on. */
    private static TopicRouteData route(String field) {
        Map<String, Integer> counts = new LinkedHashMap<>();
        for (String item : field.split(",")) {
            counts.merge(item.split(":")[0], 1, Integer::sum);
        }
        List<QueueData> queues = new ArrayList<>();
        List<BrokerData> brokers = new ArrayList<>();
        counts.forEach((broker, count) -> {
            QueueData data = new QueueData();
            data.setBrokerName(broker);
            data.setWriteQueueNums(count);
            data.setReadQueueNums(count);
            data.setPerm(READ_WRITE);
            queues.add(data);
            HashMap<Long, String> addresses = new HashMap<>();
            addresses.put(0L, broker + ":10911");
            brokers.add(new BrokerData("c", broker, addresses));
        });
        TopicRouteData route = new TopicRouteData();
        route.setQueueDatas(queues);
        route.setBrokerDatas(brokers);
        return route;
    }

    /** UTF-16 as hexadecimal digits. */
    private static String text(String hex) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4) {
            text.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        }
        return text.toString();
    }
}
