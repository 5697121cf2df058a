#pragma once

// Section `comm`: what workers exchange, and how.

#include <cstdint>
#include <string>

#include "renzan/base/config/config.h"

namespace renzan {

struct CommConfig {
  std::string backend = "auto";
  std::string forward = "fp32", backward = "fp32", dense = "fp32";
  int64_t backward_scale = 0;       // 0: see BackwardScale
  int64_t error_feedback_rows = 0;  // 0: no error feedback
  bool guard = true;
  double timeout_seconds = 60;
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
