// Push consumers of Apache's Go client, of one group, told what to do line by line on standard input: "join NAME",
// "leave NAME", "received TEXT" (from which queues each consumer got a message of that text). Each line is answered by
// one line of JSON; the end of standard input ends the process.
//
// Arguments: the NameServer, the group, the strategy as RocketMQ names it, topics joined by commas, and the names of the
// consumers to start with. The client id is 127.0.0.1@NAME.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const clientIP = "127.0.0.1"

type queue struct {
	Topic      string `json:"topic"`
	BrokerName string `json:"brokerName"`
	QueueID    int    `json:"queueId"`
}

type group struct {
	nameServer, name, strategy string
	topics                     []string
	running                    map[string]rocketmq.PushConsumer

	mutex    sync.Mutex
	received map[string]map[string][]queue // text → client id → queues
}

func main() {
	rlog.SetLogLevel("error")
	its := &group{
		nameServer: os.Args[1],
		name:       os.Args[2],
		strategy:   os.Args[3],
		topics:     strings.Split(os.Args[4], ","),
		running:    map[string]rocketmq.PushConsumer{},
		received:   map[string]map[string][]queue{},
	}
	for _, name := range os.Args[5:] {
		its.join(name)
	}
	say("ready", len(its.running))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		command, what, _ := strings.Cut(lines.Text(), " ")
		switch command {
		case "join":
			say("joined", its.join(what))
		case "leave":
			must(its.running[what].Shutdown())
			delete(its.running, what)
			say("left", clientIP+"@"+what)
		case "received":
			its.mutex.Lock()
			say("received", its.received[what])
			its.mutex.Unlock()
		default:
			say("error", "no such command: "+command)
		}
	}
}

func (its *group) join(name string) string {
	clientID := clientIP + "@" + name
	running, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{its.nameServer})),
		consumer.WithGroupName(its.name),
		consumer.WithInstance(name),
		consumer.WithStrategy(strategyOf(its.strategy)),
		withClientIP(),
	)
	must(err)
	for _, topic := range its.topics {
		must(running.Subscribe(topic, consumer.MessageSelector{},
			func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
				for _, message := range messages {
					its.got(clientID, message)
				}
				return consumer.ConsumeSuccess, nil
			}))
	}
	must(running.Start())
	its.running[name] = running
	return clientID
}

func (its *group) got(clientID string, message *primitive.MessageExt) {
	its.mutex.Lock()
	defer its.mutex.Unlock()
	text := string(message.Body)
	if its.received[text] == nil {
		its.received[text] = map[string][]queue{}
	}
	from := queue{message.Topic, message.Queue.BrokerName, message.Queue.QueueId}
	its.received[text][clientID] = append(its.received[text][clientID], from)
}

// The client has no option for it, although its options have the field.
func withClientIP() consumer.Option {
	option := reflect.MakeFunc(reflect.TypeOf(consumer.Option(nil)), func(options []reflect.Value) []reflect.Value {
		options[0].Elem().FieldByName("ClientIP").SetString(clientIP)
		return nil
	})
	return option.Interface().(consumer.Option)
}

func strategyOf(name string) consumer.AllocateStrategy {
	switch name {
	case "AVG":
		return consumer.AllocateByAveragely
	case "CONSISTENT_HASH":
		return consumer.AllocateByConsistentHash(10)
	}
	panic("no such strategy: " + name)
}

func say(key string, value any) {
	text, err := json.Marshal(map[string]any{key: value})
	must(err)
	fmt.Println(string(text))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
