// Answers on stdout what the client picks for the questions on stdin; see `tests/oracle/producers/questions.py`.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func main() {
	rlog.SetLogLevel("fatal")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		queues := queues(fields[2])
		switch fields[0] {
		case "hash":
			message := primitive.NewMessage("T", nil)
			message.WithShardingKey(text(fields[1]))
			fmt.Println(position(queues, producer.NewHashQueueSelector().Select(message, queues, "")))
		case "take":
			selector, answers := producer.ExposedSelector(start(fields[1])), []string{}
			for _, item := range strings.Split(fields[3], ";") {
				_, names, _ := strings.Cut(item, ":")
				// The first of the brokers is the last one that was tried.
				last, _, _ := strings.Cut(names, ",")
				picked := selector.Select(primitive.NewMessage("T", nil), queues, last)
				answers = append(answers, strconv.Itoa(position(queues, picked)))
			}
			fmt.Println(strings.Join(answers, ";"))
		case "send":
			answers := []string{}
			for _, attempts := range producer.ExposedSends(start(fields[1]), queues, steps(fields[3])) {
				answers = append(answers, strings.Trim(strings.ReplaceAll(fmt.Sprint(attempts), " ", ","), "[]"))
			}
			fmt.Println(strings.Join(answers, ";"))
		}
	}
}

func start(field string) uint32 {
	number, err := strconv.ParseUint(field, 10, 32)
	if err != nil {
		panic(err)
	}
	return uint32(number)
}

// queues are written as broker:id,broker:id.
func queues(field string) []*primitive.MessageQueue {
	list := []*primitive.MessageQueue{}
	for _, item := range strings.Split(field, ",") {
		broker, id, _ := strings.Cut(item, ":")
		number, _ := strconv.Atoi(id)
		list = append(list, &primitive.MessageQueue{Topic: "T", BrokerName: broker, QueueId: number})
	}
	return list
}

// steps are written as count:broker,broker;count:broker, of which the brokers count here.
func steps(field string) []map[string]bool {
	list := []map[string]bool{}
	for _, item := range strings.Split(field, ";") {
		_, names, _ := strings.Cut(item, ":")
		brokers := map[string]bool{}
		for _, name := range strings.Split(names, ",") {
			if name != "" {
				brokers[name] = true
			}
		}
		list = append(list, brokers)
	}
	return list
}

func position(queues []*primitive.MessageQueue, picked *primitive.MessageQueue) int {
	for i, queue := range queues {
		if queue == picked {
			return i
		}
	}
	return -1
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
