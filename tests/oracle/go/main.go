// The rebalance of rocketmq-client-go, asked line by line on standard input; each line is answered by one line. Fields
// are separated by tabs:
//
//	STRATEGY VIRTUAL_NODES TOPIC ROOMS CONFIG QUEUES IDS ASKED
//
// A list is its length and then its items, a queue has three of them. The answer is the queues and the ids as the
// client has sorted them, and for each asked client a list of queues, or "!" and what it panicked with.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type fields struct{ left []string }

func (f *fields) next() string {
	first := f.left[0]
	f.left = f.left[1:]
	return first
}

func (f *fields) number() int {
	number, err := strconv.Atoi(f.next())
	if err != nil {
		panic(err)
	}
	return number
}

func (f *fields) words() []string {
	words := make([]string, f.number())
	for i := range words {
		words[i] = f.next()
	}
	return words
}

func (f *fields) queues() []*primitive.MessageQueue {
	queues := make([]*primitive.MessageQueue, f.number())
	for i := range queues {
		queues[i] = &primitive.MessageQueue{Topic: f.next(), BrokerName: f.next(), QueueId: f.number()}
	}
	return queues
}

func told(queues []*primitive.MessageQueue) []string {
	words := []string{strconv.Itoa(len(queues))}
	for _, queue := range queues {
		words = append(words, queue.Topic, queue.BrokerName, strconv.Itoa(queue.QueueId))
	}
	return words
}

func strategy(name string, virtualNodes int, rooms []string, config []*primitive.MessageQueue) consumer.AllocateStrategy {
	switch name {
	case "AVG":
		return consumer.AllocateByAveragely
	case "AVG_BY_CIRCLE":
		return consumer.AllocateByAveragelyCircle
	case "MACHINE_ROOM_NEARBY":
		return consumer.AllocateByMachineNearby
	case "MACHINE_ROOM":
		return consumer.AllocateByMachineRoom(rooms)
	case "CONFIG":
		return consumer.AllocateByConfig(config)
	case "CONSISTENT_HASH":
		return consumer.AllocateByConsistentHash(virtualNodes)
	}
	panic("no strategy " + name)
}

func answer(line string) string {
	asked := &fields{strings.Split(line, "\t")}
	name, virtualNodes, topic := asked.next(), asked.number(), asked.next()
	rooms, config := asked.words(), asked.queues()
	chosen := strategy(name, virtualNodes, rooms, config)
	queues, ids := asked.queues(), asked.words()
	var words []string
	for _, own := range asked.words() {
		seen := consumer.Balance(chosen, own, topic, queues, ids)
		if words == nil {
			words = append(told(seen.Queues), strconv.Itoa(len(seen.Ids)))
			words = append(words, seen.Ids...)
		}
		if seen.Thrown != "" {
			words = append(words, "!"+seen.Thrown)
		} else {
			words = append(words, told(seen.Given)...)
		}
	}
	return strings.Join(words, "\t")
}

func main() {
	rlog.SetLogLevel("fatal")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		fmt.Println(answer(lines.Text()))
	}
}
