// A push consumer of Apache's Go client, alive until standard input closes. Says "consuming" when it has started.
//
// Arguments: the NameServer, the group, the instance name, the topic, and the strategy as RocketMQ names it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func main() {
	rlog.SetLogLevel("error")
	strategies := map[string]consumer.AllocateStrategy{
		"AVG":             consumer.AllocateByAveragely,
		"CONSISTENT_HASH": consumer.AllocateByConsistentHash(10),
	}
	running, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{os.Args[1]})),
		consumer.WithGroupName(os.Args[2]),
		consumer.WithInstance(os.Args[3]),
		consumer.WithStrategy(strategies[os.Args[5]]),
	)
	must(err)
	must(running.Subscribe(os.Args[4], consumer.MessageSelector{},
		func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			return consumer.ConsumeSuccess, nil
		}))
	must(running.Start())
	fmt.Println("consuming")
	_, _ = io.Copy(io.Discard, os.Stdin)
	must(running.Shutdown())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
