// In the place of the client's own, which needs Boost: a strategy's log lines decide nothing.
#include <algorithm>
#include <string>
#include <vector>
#define LOG_INFO(...)
#define LOG_ERROR(...)
