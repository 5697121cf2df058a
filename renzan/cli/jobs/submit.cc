// renzan submit JOB.yaml | -- COMMAND...

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/log.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/jobs/follow.h"
#include "renzan/cli/jobs/source.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/client/client.h"

namespace renzan {
namespace {

struct SubmitFlags {
  JobFlags job;
  std::string socket;
  int64_t again = 0;
  bool wait = false, follow = false, json = false, print_config = false;
};

std::string ShownJob(client::Client& client, int64_t id) {
  return client.Get(fmt::format("/v1/jobs/{}", id));
}

void WarnIfProgramChanged(client::Client& client, const std::string& before, int64_t id) {
  const auto manifest = [](const std::string& job) {
    return nlohmann::json::parse(job).at("manifest");
  };
  const nlohmann::json was = manifest(before), is = manifest(ShownJob(client, id));
  if (was.value("sha256", nlohmann::json()) != is.value("sha256", nlohmann::json()))
    LogWarning(
        "the program {} has changed since job {}: see the manifests of both jobs (renzan job show "
        "--json)",
        is.value("program", nlohmann::json()).dump(),
        nlohmann::json::parse(before).at("id").dump());
}

int Submit(const CLI::App& verb, const SubmitFlags& flags) {
  if (flags.print_config) {
    fmt::print("{}", PrintedJob(verb, flags.job));
    return 0;
  }
  const bool again = verb.count("--again") > 0;
  std::string request = again ? "" : JobRequest(verb, flags.job);
  client::Client client(EndpointOf(flags.socket));
  const std::string before = again ? ShownJob(client, flags.again) : "";
  if (again) request = RepeatRequest(before, flags.job);
  const std::string answer = client.Post("/v1/jobs", request);
  const int64_t id = nlohmann::json::parse(answer).at("id");
  if (again) WarnIfProgramChanged(client, before, id);
  if (flags.follow) {
    LogInfo("job {}", id);  // stdout is for the job's output
  } else if (flags.json) {
    PrintAnswer(answer);
  } else {
    fmt::print("{}\n", id);
    std::fflush(stdout);
  }
  return flags.wait || flags.follow ? WaitForJob(client, id, flags.follow) : 0;
}

}  // namespace

void AddSubmitVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("submit", "Submit a job; prints its id");
  const auto flags = std::make_shared<SubmitFlags>();
  AddJobFlags(*verb, flags->job);
  verb->add_option("--again", flags->again, "Run an earlier job again, by its id");
  verb->add_flag("--print-config", flags->print_config,
                 "Print the job as YAML with every key and its default, and exit");
  verb->add_flag("--wait", flags->wait, "Wait for the job's end and exit with its exit code");
  verb->add_flag("--follow", flags->follow,
                 "Print the output of worker 0 and wait for the job's end");
  verb->add_flag("--json", flags->json, "Print JSON");
  AddSocketOption(*verb, flags->socket);
  verb->footer(
      "A job that could never run on this cluster is rejected with the reason.\n"
      "Examples:\n"
      "  renzan submit --print-config > job.yaml\n"
      "  renzan submit kaggle.yaml --set priority=5\n"
      "  renzan submit --again 12\n"
      "  renzan submit --gpus 1 --wait -- python3 train.py --epochs 3");
  verb->callback([verb, flags, &exit_status] { exit_status = Submit(*verb, *flags); });
}

}  // namespace renzan
