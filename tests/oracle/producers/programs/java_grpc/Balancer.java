import apache.rocketmq.v2.Address;
import apache.rocketmq.v2.AddressScheme;
import apache.rocketmq.v2.Broker;
import apache.rocketmq.v2.Endpoints;
import apache.rocketmq.v2.MessageQueue;
import apache.rocketmq.v2.Permission;
import apache.rocketmq.v2.Resource;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.java.impl.producer.PublishingLoadBalancer;
import org.apache.rocketmq.client.java.route.MessageQueueImpl;
import org.apache.rocketmq.client.java.route.TopicRouteData;

/** Answers on stdout what the SDK picks for the questions on stdin; see {@code tests/oracle/producers/questions.py}. */
public final class Balancer {
    private static final int PORT = 8081;

    private Balancer() {
    }

    public static void main(String[] args) throws Exception {
        Constructor<PublishingLoadBalancer> made =
            PublishingLoadBalancer.class.getDeclaredConstructor(AtomicInteger.class, TopicRouteData.class);
        made.setAccessible(true);
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            TopicRouteData route = new TopicRouteData(queues(fields[2]));
            int start = fields[0].equals("hash") ? 0 : Integer.parseInt(fields[1]);
            PublishingLoadBalancer balancer = made.newInstance(new AtomicInteger(start), route);
            if (fields[0].equals("hash")) {
                out.println(positions(route, List.of(balancer.takeMessageQueueByMessageGroup(text(fields[1])))));
            } else {
                List<String> answers = new ArrayList<>();
                for (String step : fields[3].split(";")) {
                    String[] parts = step.split(":", -1);
                    answers.add(positions(route, balancer.takeMessageQueues(isolated(parts[1]), Integer.parseInt(parts[0]))));
                }
                out.println(String.join(";", answers));
            }
        }
        out.flush();
        System.exit(0);
    }

    /** Queues are written as broker:id,broker:id. */
    private static List<MessageQueue> queues(String field) {
        List<MessageQueue> queues = new ArrayList<>();
        for (String item : field.split(",")) {
            String[] parts = item.split(":");
            Broker broker = Broker.newBuilder().setName(parts[0]).setId(0).setEndpoints(endpoints(parts[0])).build();
            queues.add(MessageQueue.newBuilder().setTopic(Resource.newBuilder().setName("T")).setBroker(broker)
                .setId(Integer.parseInt(parts[1])).setPermission(Permission.READ_WRITE).build());
        }
        return queues;
    }

    private static Endpoints endpoints(String broker) {
        return Endpoints.newBuilder().setScheme(AddressScheme.DOMAIN_NAME)
            .addAddresses(Address.newBuilder().setHost(broker).setPort(PORT)).build();
    }

    private static Set<org.apache.rocketmq.client.java.route.Endpoints> isolated(String field) {
        Set<org.apache.rocketmq.client.java.route.Endpoints> excluded = new HashSet<>();
        for (String broker : field.split(",")) {
            if (!broker.isEmpty()) {
                excluded.add(new org.apache.rocketmq.client.java.route.Endpoints(endpoints(broker)));
            }
        }
        return excluded;
    }

    private static String positions(TopicRouteData route, List<MessageQueueImpl> picked) {
        List<MessageQueueImpl> all = route.getMessageQueues();
        return picked.stream().map(queue -> {
            for (int i = 0; i < all.size(); i++) {
                if (all.get(i) == queue) {
                    return String.valueOf(i);
                }
            }
            return "-1";
        }).collect(Collectors.joining(","));
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
