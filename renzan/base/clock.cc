#include "renzan/base/clock.h"

#include <cstdlib>
#include <ctime>

namespace renzan {
namespace {

class MachineClock : public Clock {
 public:
  double MonotonicSeconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  double UnixSeconds() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

const Clock& SystemClock() {
  static const MachineClock clock;
  return clock;
}

std::string FormatUtc(double unix_seconds) {
  const std::time_t seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string FormatLocal(double unix_seconds) {
  const std::time_t seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::optional<double> ParseUtc(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  double fraction = 0;
  if (*rest == '.') {
    char* end = nullptr;
    fraction = std::strtod(rest, &end);
    rest = end;
  }
  if (std::string_view(rest) != "Z") return std::nullopt;
  return static_cast<double>(::timegm(&parts)) + fraction;
}

std::optional<double> ParseHttpDate(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  const char* rest = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  return static_cast<double>(::timegm(&parts));
}

}  // namespace renzan
