import io.netty.channel.embedded.EmbeddedChannel;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.client.ClientChannelInfo;
import org.apache.rocketmq.broker.processor.QueryAssignmentProcessor;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.message.MessageQueueAssignment;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.LanguageCode;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.body.QueryAssignmentRequestBody;
import org.apache.rocketmq.remoting.protocol.body.QueryAssignmentResponseBody;
import org.apache.rocketmq.remoting.protocol.body.SetMessageRequestModeRequestBody;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * The broker's own {@code QueryAssignmentProcessor}, asked line by line on standard input; each line is answered by one
 * line. Fields are separated by tabs.
 *
 * <ul>
 * <li>{@code pop STRATEGY SHARE QUEUES IDS ASKED}: {@code allocate4Pop} for each asked client, with the lists as they
 * stand, and what it returns with its doubles</li>
 * <li>{@code query STRATEGY MODE SHARE MODEL BALANCER BROKER TOPIC QUEUES IDS ASKED}: a QUERY_ASSIGNMENT request for
 * each asked client to a broker of that name with these clients connected; {@code -} is a request mode that is not
 * set</li>
 * </ul>
 *
 * A list is its length and then its items, a queue has three of them. An answer is a list of queues, or {@code !} and
 * the text of an exception, or {@code null}.
 */
public final class Assignments {
    private final Iterator<String> fields;
    private final List<String> answer = new ArrayList<>();

    private Assignments(String line) {
        this.fields = Arrays.asList(line.split("\t", -1)).iterator();
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BrokerController broker = broker(args[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int number = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Assignments asked = new Assignments(line);
            if (asked.fields.next().equals("pop")) {
                asked.pop(broker.getQueryAssignmentProcessor());
            } else {
                asked.query(broker, "G" + ++number);
            }
            answers.println(String.join("\t", asked.answer));
        }
        Runtime.getRuntime().halt(0);
    }

    private static BrokerController broker(String folder) {
        MessageStoreConfig store = new MessageStoreConfig();
        store.setStorePathRootDir(folder);
        return new BrokerController(new BrokerConfig(), new NettyServerConfig(), new NettyClientConfig(), store);
    }

    private void pop(QueryAssignmentProcessor processor) {
        AllocateMessageQueueStrategy strategy = fields.next().equals("AVG")
            ? new AllocateMessageQueueAveragely() : new AllocateMessageQueueAveragelyByCircle();
        int share = Integer.parseInt(fields.next());
        List<MessageQueue> queues = queues();
        List<String> ids = words();
        for (String client : words()) {
            try {
                told(processor.allocate4Pop(strategy, "G", client, queues, ids, share));
            } catch (IllegalArgumentException e) {
                answer.add("!" + e.getMessage());
            }
        }
    }

    private void query(BrokerController broker, String group) throws Exception {
        String strategy = fields.next();
        String mode = fields.next();
        int share = Integer.parseInt(fields.next());
        MessageModel model = MessageModel.valueOf(fields.next());
        broker.getBrokerConfig().setServerLoadBalancerEnable(Boolean.parseBoolean(fields.next()));
        broker.getBrokerConfig().setBrokerName(fields.next());
        String topic = fields.next();
        subscribeInfo(broker).put(topic, new LinkedHashSet<>(queues()));
        QueryAssignmentProcessor processor = broker.getQueryAssignmentProcessor();
        if (!mode.equals("-")) {
            SetMessageRequestModeRequestBody set = new SetMessageRequestModeRequestBody();
            set.setTopic(topic);
            set.setConsumerGroup(group);
            set.setMode(MessageRequestMode.valueOf(mode));
            set.setPopShareQueueNum(share);
            processor.getMessageRequestModeManager().setMessageRequestMode(topic, group, set);
        }
        for (String client : words()) {
            ClientChannelInfo info = new ClientChannelInfo(new EmbeddedChannel(), client, LanguageCode.JAVA, 513);
            broker.getConsumerManager().registerConsumer(group, info, ConsumeType.CONSUME_PASSIVELY, model,
                ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, Collections.emptySet(), false);
        }
        for (String client : words()) {
            QueryAssignmentRequestBody body = new QueryAssignmentRequestBody();
            body.setTopic(topic);
            body.setConsumerGroup(group);
            body.setClientId(client);
            body.setMessageModel(model);
            body.setStrategyName(strategy);
            RemotingCommand request = RemotingCommand.createRequestCommand(RequestCode.QUERY_ASSIGNMENT, null);
            request.setBody(body.encode());
            EmbeddedChannel channel = new EmbeddedChannel(new io.netty.channel.ChannelInboundHandlerAdapter());
            RemotingCommand response = processor.processRequest(channel.pipeline().firstContext(), request);
            Set<MessageQueueAssignment> given = QueryAssignmentResponseBody
                .decode(response.getBody(), QueryAssignmentResponseBody.class).getMessageQueueAssignments();
            if (given == null) {
                answer.add("null");
                continue;
            }
            List<MessageQueue> queues = new ArrayList<>();
            given.forEach(each -> queues.add(each.getMessageQueue()));
            Collections.sort(queues);
            told(queues);
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Set<MessageQueue>> subscribeInfo(BrokerController broker) throws Exception {
        Field table = broker.getTopicRouteInfoManager().getClass().getDeclaredField("topicSubscribeInfoTable");
        table.setAccessible(true);
        return (Map<String, Set<MessageQueue>>) table.get(broker.getTopicRouteInfoManager());
    }

    private List<MessageQueue> queues() {
        List<MessageQueue> found = new ArrayList<>();
        for (int left = Integer.parseInt(fields.next()); left > 0; left--) {
            found.add(new MessageQueue(fields.next(), fields.next(), Integer.parseInt(fields.next())));
        }
        return found;
    }

    private List<String> words() {
        List<String> found = new ArrayList<>();
        for (int left = Integer.parseInt(fields.next()); left > 0; left--) {
            found.add(fields.next());
        }
        return found;
    }

    private void told(Collection<MessageQueue> queues) {
        answer.add(Integer.toString(queues.size()));
        for (MessageQueue queue : queues) {
            answer.addAll(List.of(queue.getTopic(), queue.getBrokerName(), Integer.toString(queue.getQueueId())));
        }
    }
}
