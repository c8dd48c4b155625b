// Push consumers of Apache's Go client with its own timers, and a log of when each takes a queue into its table and when
// it drops it there, as the lines of RebalanceLog.java: starting and started, stopping and stopped around the calls,
// gained and lost with a queue.
//
// Told what to do on standard input: "join NAME", "leave NAME"; its end ends the process. Arguments: NameServer, group,
// "concurrent", topic. Member NAME has the client id 127.0.0.1@NAME and the strategy AVG.
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
	"time"
	"unsafe"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const (
	clientIP = "127.0.0.1"
	sampling = 10 * time.Millisecond
)

type line struct {
	AtUs       int64   `json:"atUs"`
	ClientID   string  `json:"clientId"`
	What       string  `json:"what"`
	Topic      *string `json:"topic,omitempty"`
	BrokerName *string `json:"brokerName,omitempty"`
	QueueID    *int    `json:"queueId,omitempty"`
}

var printing sync.Mutex

func say(its line) {
	its.AtUs = time.Now().UnixMicro()
	text, err := json.Marshal(its)
	must(err)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

func main() {
	rlog.SetLogLevel("error")
	running := map[string]rocketmq.PushConsumer{}
	fmt.Println(`{"ready":true}`)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		command, name, _ := strings.Cut(lines.Text(), " ")
		clientID := clientIP + "@" + name
		if command == "join" {
			running[name] = made(name)
			say(line{ClientID: clientID, What: "starting"})
			go sample(clientID, running[name])
			must(running[name].Start())
			say(line{ClientID: clientID, What: "started"})
		} else {
			say(line{ClientID: clientID, What: "stopping"})
			must(running[name].Shutdown())
			say(line{ClientID: clientID, What: "stopped"})
		}
	}
}

func made(name string) rocketmq.PushConsumer {
	made, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{os.Args[1]})),
		consumer.WithGroupName(os.Args[2]),
		consumer.WithInstance(name),
		withClientIP(),
	)
	must(err)
	must(made.Subscribe(os.Args[4], consumer.MessageSelector{},
		func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			return consumer.ConsumeSuccess, nil
		}))
	return made
}

// Looks at the consumer's table of queues all the time; one that is dropped stays there only when the consumer ends.
func sample(clientID string, of rocketmq.PushConsumer) {
	inner := reflect.ValueOf(of).Elem().FieldByName("defaultConsumer").Elem()
	table := (*sync.Map)(unsafe.Pointer(inner.FieldByName("processQueueTable").UnsafeAddr()))
	held := map[primitive.MessageQueue]bool{}
	for ; ; time.Sleep(sampling) {
		now := map[primitive.MessageQueue]bool{}
		table.Range(func(key, state any) bool {
			if !reflect.ValueOf(state).MethodByName("IsDroppd").Call(nil)[0].Bool() {
				now[key.(primitive.MessageQueue)] = true
			}
			return true
		})
		tell(clientID, "gained", now, held)
		tell(clientID, "lost", held, now)
		held = now
	}
}

// The queues that are among these and not among the others.
func tell(clientID string, what string, these, others map[primitive.MessageQueue]bool) {
	for each := range these {
		if !others[each] {
			topic, broker, number := each.Topic, each.BrokerName, each.QueueId
			say(line{ClientID: clientID, What: what, Topic: &topic, BrokerName: &broker, QueueID: &number})
		}
	}
}

// The client has no option for it, although its options have the field.
func withClientIP() consumer.Option {
	option := reflect.MakeFunc(reflect.TypeOf(consumer.Option(nil)), func(options []reflect.Value) []reflect.Value {
		options[0].Elem().FieldByName("ClientIP").SetString(clientIP)
		return nil
	})
	return option.Interface().(consumer.Option)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
