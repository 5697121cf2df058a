// renzan job wait ID

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/jobs/follow.h"
#include "renzan/cli/jobs/verbs.h"

namespace renzan {

void AddJobWaitVerb(CLI::App& job, int& exit_status) {
  struct WaitFlags {
    std::string job;
    ClusterFlags cluster;
  };
  CLI::App* verb = job.add_subcommand("wait", "Wait for a job's end and exit with its exit code");
  const auto flags = std::make_shared<WaitFlags>();
  AddJobOption(*verb, flags->job);
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(
      "As `renzan submit --wait`, for a job that has been submitted.\n"
      "Example: renzan job wait 12");
  verb->callback([flags, &exit_status] {
    exit_status = WaitForJob(*BackendOf(flags->cluster), flags->job, /*follow=*/false);
  });
}

}  // namespace renzan
