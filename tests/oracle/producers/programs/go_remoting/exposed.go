// Laid into the package producer by `go build -overlay`: what is private to it, as broker numbers in and positions out.

package producer

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2/internal"
	"github.com/apache/rocketmq-client-go/v2/internal/remote"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const exposedTopic = "T"

// ExposedSelector is the default selector with a counter that stands somewhere.
func ExposedSelector(start uint32) QueueSelector {
	selector := NewRoundRobinQueueSelector().(*roundRobinQueueSelector)
	selector.indexer[exposedTopic] = &start
	return selector
}

// ExposedSends sends by the producer's own loop; of each message the attempts go to the positions that are returned.
func ExposedSends(start uint32, queues []*primitive.MessageQueue, failing []map[string]bool) [][]int {
	options := defaultProducerOptions()
	options.Selector = ExposedSelector(start)
	client := &exposedClient{queues: queues}
	producer := &defaultProducer{options: options, client: client}
	producer.publishInfo.Store(exposedTopic, &internal.TopicPublishInfo{HaveTopicRouterInfo: true, MqList: queues})
	attempts := [][]int{}
	for _, brokers := range failing {
		client.failing, client.attempts = brokers, []int{}
		_ = producer.sendSync(context.Background(), primitive.NewMessage(exposedTopic, []byte("x")), primitive.NewSendResult())
		attempts = append(attempts, client.attempts)
	}
	return attempts
}

type exposedClient struct {
	internal.RMQClient
	queues   []*primitive.MessageQueue
	failing  map[string]bool
	attempts []int
}

func (c *exposedClient) GetNameSrv() internal.Namesrvs { return exposedNames{} }

// InvokeSync is told the address, which is the broker's name here, and finds the queue in the request.
func (c *exposedClient) InvokeSync(_ context.Context, addr string, request *remote.RemotingCommand, _ time.Duration) (*remote.RemotingCommand, error) {
	id := request.ExtFields["queueId"]
	if id == "" {
		id = request.ExtFields["e"]
	}
	for position, queue := range c.queues {
		if queue.BrokerName == addr && strconv.Itoa(queue.QueueId) == id {
			c.attempts = append(c.attempts, position)
			break
		}
	}
	if c.failing[addr] {
		return nil, errors.New("refused")
	}
	return remote.NewRemotingCommand(internal.ResSuccess, nil, nil), nil
}

func (c *exposedClient) ProcessSendResponse(string, *remote.RemotingCommand, *primitive.SendResult, ...*primitive.Message) error {
	return nil
}

type exposedNames struct{ internal.Namesrvs }

func (exposedNames) FindBrokerAddrByName(name string) string { return name }
