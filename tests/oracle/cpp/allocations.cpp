// AllocateMQAveragely of rocketmq-client-cpp, asked line by line on standard input; each line is answered by one line.
// Fields are separated by tabs: QUEUES IDS ASKED. A list is its length and then its items, a queue has three of them.
// The answer is the queues and the ids as sorted, by the calls of Rebalance::doRebalance, and for each asked client a
// list of queues, or "!" and the text of an exception.
#include <iostream>
#include "AllocateMQStrategy.h"

using rocketmq::MQMessageQueue;

struct Fields {
  std::vector<std::string> all;
  size_t at = 0;

  explicit Fields(const std::string& line) {
    std::stringstream left(line + "\t");
    for (std::string field; std::getline(left, field, '\t');) all.push_back(field);
  }
  std::string next() { return all.at(at++); }
  std::vector<std::string> words() {
    std::vector<std::string> found;
    for (int left = std::stoi(next()); left > 0; left--) found.push_back(next());
    return found;
  }
  std::vector<MQMessageQueue> queues() {
    std::vector<MQMessageQueue> found;
    for (int left = std::stoi(next()); left > 0; left--) {
      std::string topic = next(), broker = next();
      found.push_back(MQMessageQueue(topic, broker, std::stoi(next())));
    }
    return found;
  }
};

static std::string told(const std::vector<MQMessageQueue>& queues) {
  std::stringstream text;
  text << queues.size();
  for (const MQMessageQueue& queue : queues)
    text << "\t" << queue.getTopic() << "\t" << queue.getBrokerName() << "\t" << queue.getQueueId();
  return text.str();
}

int main() {
  rocketmq::AllocateMQAveragely strategy;
  for (std::string line; std::getline(std::cin, line);) {
    Fields fields(line);
    std::vector<MQMessageQueue> queues = fields.queues();
    std::vector<std::string> ids = fields.words();
    std::sort(queues.begin(), queues.end());
    std::sort(ids.begin(), ids.end());
    std::cout << told(queues) << "\t" << ids.size();
    for (const std::string& id : ids) std::cout << "\t" << id;
    for (const std::string& asked : fields.words()) {
      std::vector<MQMessageQueue> given;
      try {
        strategy.allocate(asked, queues, ids, given);
        std::cout << "\t" << told(given);
      } catch (rocketmq::MQException& e) {
        std::string text = e.what();  // "msg: TEXT,error:-1,in file <…> line:…"
        std::cout << "\t!" << text.substr(5, text.find(",error:") - 5);
      }
    }
    std::cout << std::endl;
  }
}
