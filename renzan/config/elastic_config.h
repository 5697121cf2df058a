#pragma once

// Section `elastic`: restarts of workers on this machine.

#include <string>

#include "renzan/base/config/config.h"

namespace renzan {

struct ElasticConfig {
  int min = 0, max = 0;
  int max_restarts = 3;
  double backoff_seconds = 1;
  std::string grow_after = "10m";  // a duration

  double grow_after_seconds() const;
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
