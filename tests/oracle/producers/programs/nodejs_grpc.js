// Answers on stdout what the SDK picks for the questions on stdin; see `tests/oracle/producers/questions.py`.

const readline = require('node:readline');
const root = process.argv[2];
const { PublishingLoadBalancer } = require(`${root}/rocketmq-client-nodejs/dist/producer/PublishingLoadBalancer`);
const { Permission } = require(`${root}/rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb`);

/** What the balancer reads of queues that are written as broker:id,broker:id. */
function route(field) {
  return {
    messageQueues: field.split(',').map((item, position) => {
      const [ name, id ] = item.split(':');
      const broker = { name, endpoints: { facade: name } };
      return { position, queueId: Number(id), permission: Permission.READ_WRITE, broker };
    }),
  };
}

/** UTF-16 as hexadecimal digits. */
function text(hex) {
  return String.fromCharCode(...(hex.match(/.{4}/g) ?? []).map(unit => parseInt(unit, 16)));
}

readline.createInterface({ input: process.stdin }).on('line', line => {
  const [ kind, first, queues, steps ] = line.split('\t');
  try {
    if (kind === 'hash') {
      console.log(String(new PublishingLoadBalancer(route(queues)).takeMessageQueueByMessageGroup(text(first)).position));
      return;
    }
    const balancer = new PublishingLoadBalancer(route(queues), Number(first));
    console.log(steps.split(';').map(step => {
      const [ count, brokers ] = step.split(':');
      const excluded = new Map(brokers.split(',').filter(Boolean).map(name => [ name, {} ]));
      return balancer.takeMessageQueues(excluded, Number(count)).map(queue => queue.position).join(',');
    }).join(';'));
  } catch (error) {
    console.log(`!${error.constructor.name}`);
  }
});
