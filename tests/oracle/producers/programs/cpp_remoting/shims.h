// In the place of Boost, and of the client's own headers that need it: its thread and its timer decide no pick.
#pragma once
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
#define LOG_INFO(...)
#define LOG_DEBUG(...)
#define LOG_ERROR(...)

using namespace std;  // as the client's headers do
typedef long long int64;

namespace boost {
using std::atomic;
using std::lock_guard;
using std::memory_order_acquire;
using std::memory_order_release;
using std::mutex;
template <class T>
using scoped_ptr = std::unique_ptr<T>;
template <class... T>
int bind(T&&...) {
  return 0;
}
struct thread {
  explicit thread(int) {}
  void interrupt() {}
  void join() {}
};
namespace system {
struct error_code {};
}  // namespace system
namespace posix_time {
inline int seconds(int number) { return number; }
}  // namespace posix_time
namespace asio {
struct io_service {
  struct work {
    explicit work(io_service&) {}
  };
  void run(system::error_code&) {}
  void stop() {}
};
struct deadline_timer {
  deadline_timer(io_service&, int) {}
  void async_wait(int) {}
  int expires_from_now() { return 0; }
  void expires_from_now(int, system::error_code&) {}
};
}  // namespace asio
}  // namespace boost

namespace rocketmq {
struct UtilAll {
  static string to_string(int number) { return std::to_string(number); }
  static int64 currentTimeMillis() { return 0; }
};
}  // namespace rocketmq
