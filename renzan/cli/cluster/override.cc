// renzan cluster override USER

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/verbs.h"

namespace renzan {
namespace {

struct OverrideFlags {
  ClusterFlags cluster;
  std::string user, duration;
  int64_t max_gpus = 0;
};

void OverrideQuota(const OverrideFlags& flags) {
  const std::optional<double> seconds = ParseDuration(flags.duration);
  if (!seconds || *seconds <= 0)
    Fail(ErrorCode::kUsage, "--for {}: must be a duration such as 90m or 2h", flags.duration);
  BackendOf(flags.cluster)->OverrideQuota(flags.user, flags.max_gpus, *seconds);
  fmt::print("{}: at most {} for {}\n", flags.user, Counted(flags.max_gpus, "GPU"), flags.duration);
}

}  // namespace

void AddClusterOverrideVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand(
      "override", "Raise a user's GPU cap for some time (temporary quota override)");
  const auto flags = std::make_shared<OverrideFlags>();
  verb->add_option("USER", flags->user)->required();
  verb->add_option("--max-gpus", flags->max_gpus, "GPUs that the user's running jobs may use")
      ->required()
      ->check(AtLeast(0));
  verb->add_option("--for", flags->duration, "How long: 2h")->required();
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(
      "The old cap applies again afterwards. For the daemon's owner and root; on Kubernetes USER "
      "is\n"
      "a namespace, and the override is written into the ClusterPolicy.\n"
      "Example: renzan cluster override ann --max-gpus 16 --for 2h");
  verb->callback([flags] { OverrideQuota(*flags); });
}

}  // namespace renzan
