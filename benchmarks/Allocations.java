import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Runs RocketMQ's own allocation classes for every member of a group, as the members' clients do it among them.
 *
 * <p>Reads lines: {@code group TOPIC QUEUES MEMBERS}, then a {@code BROKER ID} a queue and an id a member, both in the
 * clients' order; {@code time STRATEGY MILLIS} answers with the nanoseconds for a whole group, the mean over at least so
 * long, and a checksum over what everybody got.
 */
public final class Allocations {
    private static final String GROUP = "benchmark";
    private static final List<MessageQueue> QUEUES = new ArrayList<>();
    private static final List<String> CLIENT_IDS = new ArrayList<>();
    /** Read by nobody; keeps the compiler from leaving out work whose result is not used. */
    private static volatile int handedOut;

    private Allocations() {
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("group")) {
                read(in, words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            } else {
                List<AllocateMessageQueueStrategy> members = members(words[1]);
                System.out.println(nanosOfAGroup(members, Long.parseLong(words[2])) + " " + checksum(members));
            }
        }
    }

    private static void read(BufferedReader in, String topic, int queues, int members) throws IOException {
        QUEUES.clear();
        CLIENT_IDS.clear();
        for (int i = 0; i < queues; i++) {
            String[] words = in.readLine().split(" ");
            QUEUES.add(new MessageQueue(topic, words[0], Integer.parseInt(words[1])));
        }
        for (int i = 0; i < members; i++) {
            CLIENT_IDS.add(in.readLine());
        }
    }

    /** Each member has a strategy object of its own; they are made before the clock starts. */
    private static List<AllocateMessageQueueStrategy> members(String strategy) {
        List<AllocateMessageQueueStrategy> members = new ArrayList<>();
        for (int i = 0; i < CLIENT_IDS.size(); i++) {
            members.add(make(strategy, i));
        }
        return members;
    }

    private static AllocateMessageQueueStrategy make(String strategy, int member) {
        String nearby = "MACHINE_ROOM_NEARBY-";
        if (strategy.startsWith(nearby)) {
            return new AllocateMachineRoomNearby(make(strategy.substring(nearby.length()), member), new Rooms());
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
                listed.setConsumeridcs(Set.of("r0", "r1", "r2"));
                return listed;
            case "CONFIG":
                AllocateMessageQueueByConfig configured = new AllocateMessageQueueByConfig();
                configured.setMessageQueueList(everyNth(member));
                return configured;
            default:
                throw new IllegalArgumentException(strategy);
        }
    }

    private static List<MessageQueue> everyNth(int first) {
        List<MessageQueue> chosen = new ArrayList<>();
        for (int i = first; i < QUEUES.size(); i += CLIENT_IDS.size()) {
            chosen.add(QUEUES.get(i));
        }
        return chosen;
    }

    private static long nanosOfAGroup(List<AllocateMessageQueueStrategy> members, long millis) {
        long start = System.nanoTime();
        long passes = 0;
        long elapsed;
        do {
            for (int i = 0; i < members.size(); i++) {
                handedOut = members.get(i).allocate(GROUP, CLIENT_IDS.get(i), QUEUES, CLIENT_IDS).size();
            }
            passes++;
            elapsed = System.nanoTime() - start;
        } while (elapsed < millis * 1_000_000);
        return elapsed / passes;
    }

    private static long checksum(List<AllocateMessageQueueStrategy> members) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < members.size(); i++) {
            String clientId = CLIENT_IDS.get(i);
            text.append(clientId).append('\n');
            for (MessageQueue queue : members.get(i).allocate(GROUP, clientId, QUEUES, CLIENT_IDS)) {
                text.append(queue.getBrokerName()).append(' ').append(queue.getQueueId()).append('\n');
            }
        }
        CRC32 crc = new CRC32();
        crc.update(text.toString().getBytes(StandardCharsets.UTF_8));
        return crc.getValue();
    }

    /** RocketMQ ships no such resolver: here a broker is named {@code ROOM@NAME} and a client id {@code ROOM.HOST@…}. */
    private static final class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return queue.getBrokerName().split("@")[0];
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return clientId.substring(0, clientId.indexOf('.'));
        }
    }
}
