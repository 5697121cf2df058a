#include "renzan/cluster/core/amounts.h"

#include <fmt/format.h>

#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan::cluster {

std::string DescribeAmount(const Snapshot& snapshot, int kind, int64_t amount) {
  switch (kind) {
    case kGpu:
      return Counted(amount, "GPU");
    case kCpu:
      return Counted(fmt::format("{}", static_cast<double>(amount) / 1000), "CPU");
    case kMemory:
      if (amount % 1024 == 0) return fmt::format("{} GiB of memory", amount / 1024);
      return fmt::format("{} MiB of memory", amount);
  }
  CHECK(kind < static_cast<int>(snapshot.resource_names.size()));
  return fmt::format("{} of {}", amount, snapshot.resource_names[kind]);
}

std::string DescribeResources(const Snapshot& snapshot, const Resources& resources) {
  std::vector<std::string> parts;
  if (resources.gpu() != 0) parts.push_back(DescribeAmount(snapshot, kGpu, resources.gpu()));
  for (int kind = 0; kind < kMaxResources; ++kind)
    if (kind != kGpu && resources[kind] != 0)
      parts.push_back(DescribeAmount(snapshot, kind, resources[kind]));
  if (parts.empty()) return "nothing";
  std::string text = parts[0];
  for (size_t i = 1; i < parts.size(); ++i)
    text += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace renzan::cluster
