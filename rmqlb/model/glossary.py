"""Field → meaning, for keys that mean the same in every result."""

GLOSSARY = {
    "topic": "name of the topic",
    "broker_name": "name of the broker",
    "queue_id": "number of the queue at its broker, from 0",
    "client_id": "client ID of the consumer",
    "strategy": "strategy, by RocketMQ's name",
    "conditions": "conditions of --fail-on",
    "sorted_consumers": "consumers in the clients' order, duplicates kept",
}
