// renzan submit JOB.yaml | -- COMMAND...

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/log.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/jobs/follow.h"
#include "renzan/cli/jobs/source.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

struct SubmitFlags {
  JobFlags job;
  ClusterFlags cluster;
  std::string again;
  bool wait = false, follow = false, json = false, print_config = false;
};

void WarnIfProgramChanged(const Document& before, const Document& now) {
  const auto manifest = [](const Document& job) {
    const Document manifest = job.value("manifest", Document());
    return manifest.is_object() ? manifest : Document::object();
  };
  const Document was = manifest(before), is = manifest(now);
  if (was.value("sha256", Document()) != is.value("sha256", Document()))
    LogWarning(
        "the program {} has changed since job {}: see the manifests of both jobs (renzan job show "
        "--json)",
        is.value("program", Document()).dump(), before.at("id").dump());
}

cluster::Submitted SubmitAsTyped(Backend& backend, const cluster::Submission& submission,
                                 const JobFlags& flags) {
  try {
    return backend.Submit(submission);
  } catch (const Error& error) {
    RethrowAsTyped(error, flags);
  }
}

int Submit(const CLI::App& verb, const SubmitFlags& flags) {
  if (flags.print_config) {
    fmt::print("{}", PrintedJob(verb, flags.job));
    return 0;
  }
  const std::unique_ptr<Backend> backend = BackendOf(flags.cluster);
  const cluster::Submission submission =
      flags.again.empty() ? SubmissionOf(verb, flags.job)
                          : RepeatedSubmission(backend->JobAgain(flags.again), flags.job);
  const cluster::Submitted submitted = SubmitAsTyped(*backend, submission, flags.job);
  if (!flags.again.empty())
    WarnIfProgramChanged(backend->ShowJob(flags.again), backend->ShowJob(submitted.job));
  if (flags.follow) {
    LogInfo("job {}", submitted.job);  // stdout is for the job's output
  } else if (flags.json) {
    PrintSubmitted(submitted);
  } else {
    fmt::print("{}\n", submitted.job);
    std::fflush(stdout);
  }
  return flags.wait || flags.follow ? WaitForJob(*backend, submitted.job, flags.follow) : 0;
}

}  // namespace

void AddSubmitVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb =
      app.add_subcommand("submit", "Submit a job; prints its id, or NAMESPACE/NAME on Kubernetes");
  const auto flags = std::make_shared<SubmitFlags>();
  AddJobFlags(*verb, flags->job);
  verb->add_option("--again", flags->again, "Run an earlier job again, by its id");
  verb->add_flag("--print-config", flags->print_config,
                 "Print the job as YAML with every key and its default, and exit");
  verb->add_flag("--wait", flags->wait, "Wait for the job's end and exit with its exit code");
  verb->add_flag("--follow", flags->follow,
                 "Print the output of worker 0 and wait for the job's end");
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(
      "A job that could never run on this cluster is rejected with the reason. On Kubernetes a\n"
      "job is a file as for this machine and an image, or a whole GangJob, which is sent as it "
      "is.\n"
      "Examples:\n"
      "  renzan submit --print-config > job.yaml\n"
      "  renzan submit kaggle.yaml --set priority=5\n"
      "  renzan submit --again 12\n"
      "  renzan submit --cluster prod --image trainer:7 --pod-template pod.yaml kaggle.yaml\n"
      "  renzan submit --gpus 1 --wait -- python3 train.py --epochs 3");
  verb->callback([verb, flags, &exit_status] { exit_status = Submit(*verb, *flags); });
}

}  // namespace renzan
