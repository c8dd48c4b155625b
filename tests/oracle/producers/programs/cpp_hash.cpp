// Answers on stdout what std::hash makes of the questions on stdin; see `tests/oracle/producers/questions.py`.
//
// Both C++ clients take std::hash<std::string> modulo the number of queues, in a size_t: what it gives is the standard
// library's, here libstdc++ with 64 bits.

#include <algorithm>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>

static_assert(sizeof(std::size_t) == 8, "the answers are those of 64 bits");
#ifndef __GLIBCXX__
#error "the answers are those of libstdc++"
#endif

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
static std::string text(const std::string& hex) {
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

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::stringstream fields(line);
    std::string kind, key, queues;
    std::getline(fields, kind, '\t');
    std::getline(fields, key, '\t');
    std::getline(fields, queues, '\t');
    std::size_t size = 1 + std::count(queues.begin(), queues.end(), ',');
    std::cout << std::hash<std::string>{}(text(key)) % size << "\n";
  }
}
