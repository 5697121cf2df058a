#pragma once

// Section `checkpoint`.

#include <cstdint>
#include <string>

#include "renzan/base/config/config.h"

namespace renzan {

struct CheckpointConfig {
  std::string dir;            // empty: RUN/checkpoints
  std::string stage;          // empty: none
  std::string every = "10m";  // a duration
  int64_t every_steps = 0;
  int keep = 3;
  bool incremental = true;
  bool sparse = true;
  std::string quantize = "none";
  int64_t max_copies_mib = 0;  // 0: what memory is left, see CheckMemory

  double every_seconds() const;  // 0: never by time
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
