#include "renzan/cli/machine/processor.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "renzan/base/cpus.h"

namespace renzan {

Finding FindCores(const std::string& root) {
  const CpuBudget budget = ReadCpuBudget(root);
  Finding finding{.name = "cores", .here = fmt::format("{}", budget.allowed)};
  if (budget.quota < budget.allowed) {
    finding.state = Finding::State::kLimited;
    finding.here += fmt::format(", but a quota of {:.3g} ({})", budget.quota, budget.cgroup);
    finding.advice = "raise the container's CPU limit, or set --threads to at most that limit";
  }
  if (budget.requested < budget.allowed) {
    finding.state = Finding::State::kLimited;
    finding.here += fmt::format(", but this job requests {:.3g}", budget.requested);
    finding.advice = "request more (resources.cpu, --cpus)";
  }
  return finding;
}

Finding FindInstructionSet(const std::string& widest) {
  Finding finding{.name = "instruction set", .here = widest};
  if (widest == "sse4") {
    finding.state = Finding::State::kLimited;
    finding.advice = "training is several times faster with AVX2 or AVX-512";
  }
  return finding;
}

Finding FindAmx(const std::string& root) {
  std::ifstream cpuinfo(root + "/proc/cpuinfo");
  Finding finding{.name = "AMX"};
  for (std::string line; finding.here.empty() && std::getline(cpuinfo, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream flags(line);
    for (std::string flag; flags >> flag;)
      if (flag.starts_with("amx_")) finding.here += (finding.here.empty() ? "" : ", ") + flag;
    break;
  }
  if (finding.here.empty()) {
    finding.state = Finding::State::kMissing;
    finding.here = "none";
    finding.advice = "nothing: with it, numerics.precision=bf16 would be faster";
    return finding;
  }
  finding.advice = "used with numerics.precision=bf16";
  return finding;
}

}  // namespace renzan
