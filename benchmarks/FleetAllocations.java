import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.consistenthash.ConsistentHashRouter;
import org.apache.rocketmq.common.consistenthash.Node;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Runs RocketMQ's own allocation classes over a whole fleet in one loop: for each group and topic, each member's client
 * computes its own share, as the members' clients do it among them.
 *
 * <p>A fleet is a file of lines of words, with tabs between them: {@code group NAME} and an {@code ID ZONE} a member;
 * then, for each of its topics, {@code topic NAME} and a {@code BROKER ZONE QUEUES} a broker, both in the clients'
 * order; and where members do not subscribe to it, {@code absent ID…} after it. An empty zone is none.
 *
 * <p>Reads lines from standard input, and answers each with numbers:
 * {@code fleet FILE}: pairs and queues of the fleet from now on;
 * {@code check STRATEGY MILLIS}: of how many pairs, the first ones, the owners were found in so long, and a checksum;
 * {@code time STRATEGY MILLIS}: queues dealt out and nanoseconds, for so long, going on where the last one stopped;
 * {@code pass STRATEGY MILLIS}: the same, in whole passes over all pairs;
 * {@code rows STRATEGY IN OUT}: the same, with reading the fleet from a file and writing a line for each queue.
 * {@code CONSISTENT_HASH/one-ring} is what that class could do: a ring a group instead of one a member and topic.
 */
public final class FleetAllocations {
    private static final String ONE_RING = "CONSISTENT_HASH/one-ring";
    private static final int VIRTUAL_NODES = 10;
    /** So many calls' members × queues lie between two looks at the clock. */
    private static final long BETWEEN_LOOKS = 100_000;
    private static final List<Pair> FLEET = new ArrayList<>();
    private static final Map<String, String> ZONES = new HashMap<>();
    private static int next;
    /** Read by nobody; keeps the compiler from leaving out work whose result is not used. */
    private static volatile int handedOut;

    private FleetAllocations() {
    }

    private record Pair(
            String group, List<String> clientIds, String topic, List<MessageQueue> queues, Set<String> absent) {
        long work() {
            return (long) queues.size() * clientIds.size();
        }
    }

    private record Member(String clientId) implements Node {
        @Override
        public String getKey() {
            return clientId;
        }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "fleet" -> System.out.println(read(words[1]));
                case "check" -> System.out.println(check(dealer(words[1]), Long.parseLong(words[2])));
                case "time" -> System.out.println(time(dealer(words[1]), Long.parseLong(words[2])));
                case "pass" -> System.out.println(pass(dealer(words[1]), Long.parseLong(words[2])));
                case "rows" -> System.out.println(rows(words[1], words[2], words[3]));
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    private static String read(String file) throws IOException {
        FLEET.clear();
        ZONES.clear();
        next = 0;
        // Groups that read the same topic share its list: the more of it stays in the processor's cache.
        Map<String, List<MessageQueue>> lists = new HashMap<>();
        String group = "";
        List<String> clientIds = List.of();
        long queues = 0;
        try (BufferedReader in = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] words = line.split("\t", -1);
                if (words[0].equals("group")) {
                    group = words[1];
                    clientIds = names(words, 2);
                } else if (words[0].equals("topic")) {
                    List<MessageQueue> all = lists.computeIfAbsent(line, ignored -> queues(words));
                    FLEET.add(new Pair(group, clientIds, words[1], all, Set.of()));
                    queues += all.size();
                } else {
                    Pair last = FLEET.remove(FLEET.size() - 1);
                    Set<String> absent = Set.copyOf(Arrays.asList(words).subList(1, words.length));
                    FLEET.add(new Pair(last.group, last.clientIds, last.topic, last.queues, absent));
                }
            }
        }
        return FLEET.size() + " " + queues;
    }

    private static List<String> names(String[] words, int first) {
        List<String> names = new ArrayList<>();
        for (int i = first; i < words.length; i += 2) {
            names.add(words[i]);
            ZONES.put(words[i], words[i + 1]);
        }
        return names;
    }

    private static List<MessageQueue> queues(String[] words) {
        List<MessageQueue> queues = new ArrayList<>();
        for (int i = 2; i < words.length; i += 3) {
            ZONES.put(words[i], words[i + 1]);
            for (int id = 0; id < Integer.parseInt(words[i + 2]); id++) {
                queues.add(new MessageQueue(words[1], words[i], id));
            }
        }
        return queues;
    }

    private static String check(Dealer dealer, long millis) {
        CRC32 crc = new CRC32();
        long start = System.nanoTime();
        int pairs = 0;
        do {
            Pair pair = FLEET.get(pairs++);
            String[] owners = dealer.owners(pair);
            crc.update((String.join("\n", owners) + (owners.length > 0 ? "\n" : "")).getBytes(StandardCharsets.UTF_8));
        } while (pairs < FLEET.size() && System.nanoTime() - start < millis * 1_000_000);
        return pairs + " " + crc.getValue();
    }

    private static String time(Dealer dealer, long millis) {
        long start = System.nanoTime();
        long queues = 0;
        long elapsed;
        do {
            for (long work = 0; work < BETWEEN_LOOKS; next = (next + 1) % FLEET.size()) {
                Pair pair = FLEET.get(next);
                dealer.deal(pair);
                queues += pair.queues.size();
                work += pair.work() + 1;
            }
            elapsed = System.nanoTime() - start;
        } while (elapsed < millis * 1_000_000);
        return queues + " " + elapsed;
    }

    private static String pass(Dealer dealer, long millis) {
        long start = System.nanoTime();
        long queues = 0;
        long elapsed;
        do {
            for (Pair pair : FLEET) {
                dealer.deal(pair);
                queues += pair.queues.size();
            }
            elapsed = System.nanoTime() - start;
        } while (elapsed < millis * 1_000_000);
        return queues + " " + elapsed;
    }

    private static String rows(String strategy, String from, String to) throws IOException {
        long start = System.nanoTime();
        read(from);
        Dealer dealer = dealer(strategy);
        long queues = 0;
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(to), StandardCharsets.UTF_8)) {
            for (Pair pair : FLEET) {
                String[] owners = dealer.owners(pair);
                for (int i = 0; i < owners.length; i++) {
                    MessageQueue queue = pair.queues.get(i);
                    out.append(pair.group).append('\t').append(pair.topic).append('\t').append(queue.getBrokerName());
                    out.append('\t').append(Integer.toString(queue.getQueueId())).append('\t').append(strategy);
                    out.append('\t').append(owners[i]).append('\n');
                }
                queues += owners.length;
            }
        }
        return queues + " " + (System.nanoTime() - start);
    }

    private static Dealer dealer(String strategy) {
        return strategy.equals(ONE_RING) ? new OneRing() : new Members(make(strategy));
    }

    private static AllocateMessageQueueStrategy make(String strategy) {
        String nearby = "MACHINE_ROOM_NEARBY-";
        if (strategy.startsWith(nearby)) {
            return new AllocateMachineRoomNearby(make(strategy.substring(nearby.length())), new Zones());
        }
        switch (strategy) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash();
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom listed = new AllocateMessageQueueByMachineRoom();
                listed.setConsumeridcs(Set.of("r1", "r2"));
                return listed;
            default:
                throw new IllegalArgumentException(strategy);
        }
    }

    /** Deals out the queues of a pair. */
    private interface Dealer {
        void deal(Pair pair);

        /** The owner of each queue, empty for nobody. */
        String[] owners(Pair pair);
    }

    /** Each member that subscribes asks its strategy object; one object serves all, for none keeps anything. */
    private record Members(AllocateMessageQueueStrategy strategy) implements Dealer {
        @Override
        public void deal(Pair pair) {
            for (String clientId : pair.clientIds) {
                handedOut = share(pair, clientId).size();
            }
        }

        @Override
        public String[] owners(Pair pair) {
            Map<MessageQueue, String> owners = new IdentityHashMap<>();
            for (String clientId : pair.clientIds) {
                for (MessageQueue queue : share(pair, clientId)) {
                    owners.put(queue, clientId);
                }
            }
            return pair.queues.stream().map(queue -> owners.getOrDefault(queue, "")).toArray(String[]::new);
        }

        private List<MessageQueue> share(Pair pair, String clientId) {
            if (!pair.absent.isEmpty() && pair.absent.contains(clientId)) {
                return List.of();
            }
            try {
                return strategy.allocate(pair.group, clientId, pair.queues, pair.clientIds);
            } catch (RuntimeException refusal) {
                return List.of(); // the client logs it, and keeps what it holds
            }
        }
    }

    /** RocketMQ's ring, made once a group, and each queue looked up on it once. */
    private static final class OneRing implements Dealer {
        private List<String> clientIds;
        private ConsistentHashRouter<Member> router;

        @Override
        public void deal(Pair pair) {
            ConsistentHashRouter<Member> ring = ring(pair);
            for (MessageQueue queue : pair.queues) {
                Member owner = ring.routeNode(queue.toString());
                handedOut = owner == null ? 0 : owner.clientId.length();
            }
        }

        @Override
        public String[] owners(Pair pair) {
            ConsistentHashRouter<Member> ring = ring(pair);
            String[] owners = new String[pair.queues.size()];
            for (int i = 0; i < owners.length; i++) {
                Member owner = ring.routeNode(pair.queues.get(i).toString());
                owners[i] = owner == null || pair.absent.contains(owner.clientId) ? "" : owner.clientId;
            }
            return owners;
        }

        private ConsistentHashRouter<Member> ring(Pair pair) {
            if (clientIds != pair.clientIds) {
                clientIds = pair.clientIds;
                router = new ConsistentHashRouter<>(clientIds.stream().map(Member::new).toList(), VIRTUAL_NODES);
            }
            return router;
        }
    }

    /** Zones as the fleet's file has them: RocketMQ ships no such resolver. */
    private static final class Zones implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return ZONES.get(queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return ZONES.get(clientId);
        }
    }
}
