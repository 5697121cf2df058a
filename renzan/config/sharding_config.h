#pragma once

// Section `sharding`.

#include <map>
#include <string>

#include "renzan/base/config/config.h"

namespace renzan {

// Which worker holds what: never changes the result.
struct ShardingConfig {
  std::string default_sharding = "auto";      // a word of ShardingNames()
  std::map<std::string, std::string> tables;  // by feature name
  std::string plan;                           // a file (plan_file.h), instead of both
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
