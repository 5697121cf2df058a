// renzan cluster challenge JOB.yaml

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/jobs/source.h"
#include "renzan/cli/text/amounts_text.h"

namespace renzan {
namespace {

using Json = Document;

struct ChallengeFlags {
  JobFlags job;
  ClusterFlags cluster;
  bool plan_only = false, json = false;
};

std::string Ids(const Json& ids) {
  return ids.empty() ? "none" : fmt::format("{}: {}", ids.size(), ids.dump());
}

void RequireThatItFits(const Json& plan) {
  if (!plan.at("fits").get<bool>())
    Fail(ErrorCode::kConfig,
         "the job does not fit even if all others stop: request less, or return nodes to service "
         "(`renzan nodes` says which are cordoned or drained, `renzan nodes restore NAME`)");
}

void PrintPlan(const Json& plan) {
  const int64_t now = SystemClock().UnixMs(), start = plan.at("earliest_start");
  fmt::print("jobs that stop and resume later   {}\n", Ids(plan.at("stops")));
  fmt::print("of which lose unsaved work        {}\n", Ids(plan.at("loses_work")));
  // As large as their last checkpoints, if they have written any that can be seen from here.
  const int64_t bytes = plan.at("bytes_to_save");
  const bool unknown = bytes == 0 && plan.at("stops").size() > plan.at("loses_work").size();
  fmt::print("bytes of checkpoints to write     {}\n",
             unknown ? "?" : MebibytesText((bytes + (1 << 20) - 1) >> 20));
  fmt::print("work to be repeated               {} GPU-hours\n",
             NumberText(plan.at("gpu_seconds_lost").get<double>() / 3600));
  fmt::print("earliest start                    {} (in {})\n", LocalTimeText(start, now),
             DurationText(start - now));
}

void Challenge(const CLI::App& verb, ChallengeFlags& flags) {
  flags.job.overrides.push_back("grand_challenge=true");
  const cluster::Submission submission = SubmissionOf(verb, flags.job);
  const std::unique_ptr<Backend> backend = BackendOf(flags.cluster);
  Json plan;
  try {
    plan = backend->PlanChallenge(submission);
  } catch (const Error& error) {
    RethrowAsTyped(error, flags.job);
  }
  if (flags.plan_only && flags.json) return PrintDocument(plan);
  if (!flags.json) RequireThatItFits(plan);
  if (flags.plan_only) return PrintPlan(plan);
  // Before the plan is printed: whoever may not do it should not read that jobs stop.
  const cluster::Submitted submitted = backend->Submit(submission);
  if (flags.json) return PrintSubmitted(submitted);
  PrintPlan(plan);
  fmt::print("job {}\n", submitted.job);
}

}  // namespace

void AddClusterChallengeVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand(
      "challenge", "Run one job on the whole cluster; other jobs stop and resume later");
  const auto flags = std::make_shared<ChallengeFlags>();
  AddJobFlags(*verb, flags->job);
  verb->add_flag("--plan-only", flags->plan_only,
                 "Only print which jobs would stop and what that costs");
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(
      "Jobs that checkpoint resume afterwards; they keep their position in the pending queue.\n"
      "Example: renzan cluster challenge big.yaml --plan-only");
  verb->callback([verb, flags] { Challenge(*verb, *flags); });
}

}  // namespace renzan
