module oracle

go 1.13

require github.com/apache/rocketmq-client-go/v2 v2.1.2

// The module with rebalance.go in its package consumer, made by tests/oracle/make_allocations.py.
replace github.com/apache/rocketmq-client-go/v2 => ./client
