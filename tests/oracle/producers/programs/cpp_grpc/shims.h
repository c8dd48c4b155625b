// In the place of abseil, of what Protocol Buffers make, and of the client's own classes round the one that picks.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#define ROCKETMQ_NAMESPACE_BEGIN namespace rocketmq {
#define ROCKETMQ_NAMESPACE_END }
#define LOCKS_EXCLUDED(x)
#define GUARDED_BY(x)
#define SPDLOG_WARN(...)
#define SPDLOG_DEBUG(...)

namespace absl {
using std::optional;
using std::string_view;
struct Mutex {};
struct MutexLock {
  explicit MutexLock(Mutex*) {}
};
}  // namespace absl

namespace rmq {
struct Resource {
  std::string name_;
  const std::string& name() const { return name_; }
};
struct Broker {
  std::string name_;
  const std::string& name() const { return name_; }
  int id() const { return 0; }
};
struct MessageQueue {
  Resource topic_;
  Broker broker_;
  std::size_t place;
  const Resource& topic() const { return topic_; }
  const Broker& broker() const { return broker_; }
  int permission() const { return 0; }
};
}  // namespace rmq

namespace rocketmq {
struct MixAll {
  static const int MASTER_BROKER_ID = 0;
  static std::uint32_t random(std::uint32_t, std::uint32_t) { return 0; }
};
inline bool writable(int) { return true; }
inline const std::string& urlOf(const rmq::MessageQueue& queue) { return queue.broker().name(); }

struct TopicRouteData {
  std::vector<rmq::MessageQueue> queues;
  const std::vector<rmq::MessageQueue>& messageQueues() const { return queues; }
};
using TopicRouteDataPtr = std::shared_ptr<TopicRouteData>;

struct ProducerImpl {
  std::set<std::string> isolated;
  std::size_t attempts = 0;
  bool isEndpointIsolated(const std::string& url) const { return isolated.count(url) > 0; }
  std::size_t maxAttemptTimes() const { return attempts; }
};
}  // namespace rocketmq
