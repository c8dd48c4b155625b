// What TopicPublishInfo of rocketmq-clients' C++ client picks for the questions on stdin, with the std::hash of the
// standard library that it is built with: the answers are those of libstdc++ with 64 bits.
#include <iostream>

#include "cpp_text.h"
#include "shims.h"
#define private public
#include "TopicPublishInfo.h"
#undef private

static_assert(sizeof(std::size_t) == 8, "the answers are those of 64 bits");
#ifndef __GLIBCXX__
#error "the answers are those of libstdc++"
#endif

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> fields = parts(line, '\t');
    auto producer = std::make_shared<rocketmq::ProducerImpl>();
    auto route = std::make_shared<rocketmq::TopicRouteData>();
    for (const auto& queue : queues_of(fields[2])) {
      route->queues.push_back({{"T"}, {queue.first}, route->queues.size()});
    }
    rocketmq::TopicPublishInfo info(producer, "T", route);
    std::vector<rmq::MessageQueue> picked;
    std::string answer;
    if (fields[0] == "hash") {
      info.selectMessageQueues(key_of(fields[1]), picked);
      std::cout << picked.at(0).place << "\n";
      continue;
    }
    info.send_which_queue_ = static_cast<std::uint32_t>(std::stoul(fields[1]));
    for (const Step& step : steps_of(fields[3])) {
      producer->isolated = step.brokers;
      producer->attempts = step.count;
      picked.clear();
      info.selectMessageQueues({}, picked);
      std::string places;
      for (const auto& queue : picked) places += (places.empty() ? "" : ",") + std::to_string(queue.place);
      answer += places + ";";
    }
    answer.pop_back();
    std::cout << answer << "\n";
  }
}
