#include "renzan/cluster/local/supervisor/log_pump.h"

#include <string_view>
#include <utility>

namespace renzan::cluster::local {

Descriptor LogPump::Add(LogWriter log) {
  LogWriter& kept = logs_.emplace_back(std::move(log));
  return pump_.Add([&kept](std::string_view piece) { kept.Write(piece); });
}

int64_t LogPump::dropped_bytes() const {
  int64_t bytes = 0;
  for (const LogWriter& log : logs_) bytes += log.dropped_bytes();
  return bytes;
}

}  // namespace renzan::cluster::local
