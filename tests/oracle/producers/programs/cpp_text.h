// What the C++ programs read: a question's fields, queues, steps, and keys; see `tests/oracle/producers/questions.py`.
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

struct Step {
  unsigned count;
  std::set<std::string> brokers;
};

static std::vector<std::string> parts(const std::string& text, char between) {
  std::vector<std::string> found;
  std::stringstream left(text);
  for (std::string part; std::getline(left, part, between);) found.push_back(part);
  return found;
}

static std::vector<std::pair<std::string, int>> queues_of(const std::string& field) {
  std::vector<std::pair<std::string, int>> found;
  for (const std::string& item : parts(field, ',')) {
    std::size_t colon = item.rfind(':');
    found.emplace_back(item.substr(0, colon), std::stoi(item.substr(colon + 1)));
  }
  return found;
}

static std::vector<Step> steps_of(const std::string& field) {
  std::vector<Step> found;
  for (const std::string& item : parts(field, ';')) {
    std::size_t colon = item.find(':');
    std::vector<std::string> brokers = parts(item.substr(colon + 1), ',');
    found.push_back({static_cast<unsigned>(std::stoul(item.substr(0, colon))), {brokers.begin(), brokers.end()}});
  }
  return found;
}

static void put(std::string& text, unsigned long point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xC0 | point >> 6);
    text += static_cast<char>(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    text += static_cast<char>(0xE0 | point >> 12);
    text += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (point & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | point >> 18);
    text += static_cast<char>(0x80 | (point >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (point & 0x3F));
  }
}

// UTF-16 as hexadecimal digits, in UTF-8.
static std::string key_of(const std::string& hex) {
  std::string made;
  for (std::size_t i = 0; i < hex.size(); i += 4) {
    unsigned long unit = std::stoul(hex.substr(i, 4), nullptr, 16);
    if (unit >= 0xD800 && unit < 0xDC00) {
      i += 4;
      unit = 0x10000 + ((unit - 0xD800) << 10) + (std::stoul(hex.substr(i, 4), nullptr, 16) - 0xDC00);
    }
    put(made, unit);
  }
  return made;
}
