// Where the attempts of messages go: TopicPublishInfo of rocketmq-client-cpp picks. The loop round it is
// DefaultMQProducerImpl::sendDefaultImpl said again, as that class needs a network.
#include <iostream>

#include "cpp_text.h"
#include "shims.h"
#define private public
#include "TopicPublishInfo.h"
#undef private

static const int RETRY_TIMES = 5;  // of a new DefaultMQProducer

static std::string attempts(rocketmq::TopicPublishInfo& info, const std::set<std::string>& failing) {
  std::string places;
  rocketmq::MQMessageQueue last;
  int index = 0;
  for (int times = 1; times <= RETRY_TIMES; times++) {
    index = times == 1 ? info.getWhichQueue() : index + 1;
    last = info.selectOneMessageQueue(last, index);
    if (last.getQueueId() == -1) continue;
    for (std::size_t place = 0; place < info.m_queues.size(); place++) {
      if (info.m_queues[place] == last) places += (places.empty() ? "" : ",") + std::to_string(place);
    }
    if (!failing.count(last.getBrokerName())) break;
  }
  return places;
}

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> fields = parts(line, '\t');
    rocketmq::TopicPublishInfo info;
    info.m_sendWhichQueue = static_cast<int>(std::stoul(fields[1]) & 0x7fffffff);  // it has no sign
    for (const auto& queue : queues_of(fields[2])) {
      info.updateMessageQueueList(rocketmq::MQMessageQueue("T", queue.first, queue.second));
    }
    std::string answer;
    for (const Step& step : steps_of(fields[3])) answer += attempts(info, step.brokers) + ";";
    answer.pop_back();
    std::cout << answer << "\n";
  }
}
