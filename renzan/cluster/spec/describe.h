#pragma once

// Fields that job and cluster configurations share; see ConfigFields.

#include <cstdint>
#include <map>
#include <string>

#include "renzan/base/config/config.h"

namespace renzan::cluster::spec {

inline constexpr int64_t kMaxCount = 1'000'000'000;

void DescribeLabels(ConfigFields& fields, const char* key,
                    std::map<std::string, std::string>* labels, const char* doc);

// Text as in ParseDuration(), at most ten years.
void DescribeDuration(ConfigFields& fields, const char* key, std::string* value, const char* doc);

// Named countable resources, each from 0 to kMaxCount.
void DescribeCounts(ConfigFields& fields, const char* key, std::map<std::string, int64_t>* counts);

}  // namespace renzan::cluster::spec
