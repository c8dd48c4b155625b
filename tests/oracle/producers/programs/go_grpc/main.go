// Answers on stdout what the SDK picks for the questions on stdin; see `tests/oracle/producers/questions.py`.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unsafe"

	golang "github.com/apache/rocketmq-clients/golang/v5"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		queues := queues(fields[2])
		balancer, err := golang.NewPublishingLoadBalancer(queues)
		if err != nil {
			panic(err)
		}
		switch fields[0] {
		case "hash":
			group := text(fields[1])
			picked, err := balancer.TakeMessageQueueByMessageGroup(&group)
			if err != nil {
				panic(err)
			}
			fmt.Println(positions(queues, picked))
		case "take":
			start(balancer, fields[1])
			answers := []string{}
			for _, step := range strings.Split(fields[3], ";") {
				count, brokers, _ := strings.Cut(step, ":")
				number, _ := strconv.Atoi(count)
				picked, err := balancer.TakeMessageQueues(isolated(brokers), number)
				if err != nil {
					panic(err)
				}
				answers = append(answers, positions(queues, picked))
			}
			fmt.Println(strings.Join(answers, ";"))
		}
	}
}

// start sets the private counter, whose first field is the number.
func start(balancer golang.PublishingLoadBalancer, field string) {
	number, err := strconv.ParseInt(field, 10, 32)
	if err != nil {
		panic(err)
	}
	index := reflect.ValueOf(balancer).Elem().FieldByName("index")
	*(*int32)(unsafe.Pointer(index.UnsafeAddr())) = int32(number)
}

// isolated are the addresses of brokers: each has its own host, of the broker's name.
func isolated(brokers string) *sync.Map {
	excluded := &sync.Map{}
	for _, name := range strings.Split(brokers, ",") {
		if name != "" {
			excluded.Store(name+":8081", true)
		}
	}
	return excluded
}

// queues are written as broker:id,broker:id.
func queues(field string) []*v2.MessageQueue {
	list := []*v2.MessageQueue{}
	for _, item := range strings.Split(field, ",") {
		broker, id, _ := strings.Cut(item, ":")
		number, _ := strconv.Atoi(id)
		endpoints := &v2.Endpoints{Addresses: []*v2.Address{{Host: broker, Port: 8081}}}
		list = append(list, &v2.MessageQueue{Id: int32(number), Broker: &v2.Broker{Name: broker, Endpoints: endpoints}})
	}
	return list
}

func positions(queues []*v2.MessageQueue, picked []*v2.MessageQueue) string {
	list := []string{}
	for _, one := range picked {
		for i, queue := range queues {
			if queue == one {
				list = append(list, strconv.Itoa(i))
			}
		}
	}
	return strings.Join(list, ",")
}

// text is UTF-16 as hexadecimal digits.
func text(hex string) string {
	units := []uint16{}
	for i := 0; i < len(hex); i += 4 {
		unit, err := strconv.ParseUint(hex[i:i+4], 16, 16)
		if err != nil {
			panic(err)
		}
		units = append(units, uint16(unit))
	}
	return string(utf16.Decode(units))
}
