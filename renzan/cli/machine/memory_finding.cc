#include "renzan/cli/machine/memory_finding.h"

#include <fmt/format.h>

#include "renzan/base/memory_budget.h"
#include "renzan/cli/text/amounts_text.h"

namespace renzan {

Finding FindMemory(const std::string& root) {
  const MemoryBudget budget = ReadMemoryBudget(root);
  Finding finding{.name = "memory",
                  .here = fmt::format("{}, {} of it available", MebibytesText(budget.bytes >> 20),
                                      MebibytesText(budget.available >> 20))};
  if (!budget.cgroup.empty()) {
    finding.state = Finding::State::kLimited;
    finding.here +=
        fmt::format(", but a limit of {} ({})", MebibytesText(budget.limit >> 20), budget.cgroup);
    finding.advice = "raise the container's memory limit if a model does not fit";
  }
  return finding;
}

}  // namespace renzan
