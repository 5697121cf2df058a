#include "renzan/cli/machine/processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "renzan/cli/machine/cgroup.h"

namespace renzan {
namespace {

// CPUs' worth of time per second: "max 100000" or "150000 100000" (version 2), or two files of
// which the first holds -1 for none (version 1).
double QuotaOf(const Cgroup& group, const std::string& root) {
  double quota = -1, period = -1;
  if (group.v2) {
    std::ifstream(root + group.directory + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(root + group.directory + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(root + group.directory + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

}  // namespace

Finding FindCores(const std::string& root) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  Finding finding{.name = "cores", .here = fmt::format("{}", cores)};
  double strictest = cores;
  for (const Cgroup& group : CgroupsOfThisProcess("cpu", root)) {
    const double quota = QuotaOf(group, root);
    if (quota >= strictest) continue;
    strictest = quota;
    finding.state = Finding::State::kLimited;
    finding.here = fmt::format("{}, but a quota of {:.2g} ({})", cores, quota, group.directory);
    finding.advice = "raise the container's CPU limit, or set --threads to no more than it allows";
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
  }
  finding.advice = "nothing: matrix products are in float32, which AMX does not speed up";
  return finding;
}

}  // namespace renzan
