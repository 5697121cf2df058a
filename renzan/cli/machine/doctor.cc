// renzan doctor

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cli/job_system/load.h"
#include "renzan/cli/machine/control_groups.h"
#include "renzan/cli/machine/disk.h"
#include "renzan/cli/machine/gpus.h"
#include "renzan/cli/machine/installation.h"
#include "renzan/cli/machine/kubernetes.h"
#include "renzan/cli/machine/memory_finding.h"
#include "renzan/cli/machine/network.h"
#include "renzan/cli/machine/processor.h"
#include "renzan/cli/machine/verbs.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/version.h"
#include "renzan/nn/isa.h"

namespace renzan {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Finding FindJobSystem() {
  Finding finding{.name = "job system"};
  try {
    CheckJobSystem();
  } catch (const Error& error) {
    finding.state = Finding::State::kMissing;
    finding.here = "only the trainer";
    finding.advice = error.what();
    return finding;
  }
  try {
    finding.here = SupervisorProgram();
  } catch (const Error& error) {
    finding.state = Finding::State::kMissing;
    finding.here = error.what();
    finding.advice = "install renzan-supervisor too: `renzan cluster up` needs it";
    return finding;
  }
  const DaemonState daemon = DaemonInJobSystem();
  if (!daemon.history.empty()) finding.here += "; its daemon has " + daemon.history;
  if (!daemon.disk_trouble.empty()) {
    finding.state = Finding::State::kLimited;
    finding.here = "the daemon's disk is nearly full";
    finding.advice = daemon.disk_trouble;
  }
  return finding;
}

Finding FindObjectStores() {
  Finding finding{.name = "object stores"};
  try {
    finding.here = CheckObjectStores();
  } catch (const Error& error) {
    finding.state = Finding::State::kMissing;
    finding.here = "only files of this machine";
    finding.advice = error.what();
  }
  return finding;
}

std::vector<Finding> Examine(const std::string& directory) {
  const std::vector<dev_t> gpus = GpuNumbers();
  return {FindCores(),
          FindInstructionSet(SelectIsa("auto")),
          FindAmx(),
          FindGpus(),
          FindGpuTraining(),
          FindMpi(MpiLibraryVersion(), Variable("PATH")),
          FindGlooInterface(Variable("GLOO_SOCKET_IFNAME")),
          FindMemory(),
          FindDisk(directory, SystemClock()),
          FindJobSystem(),
          FindControlGroups(FindCgroupSupport({.devices = gpus}), !gpus.empty()),
          FindObjectStores(),
          FindKubernetes(FindKubernetesServer([](const char* name) { return std::getenv(name); }))};
}

void Print(const std::vector<Finding>& findings) {
  Table table({{"what"}, {"state"}, {"here"}, {"what to do"}});
  for (const Finding& finding : findings)
    table.Add({finding.name, StateName(finding.state), finding.here, finding.advice});
  fmt::print("{}", table.Text());
}

void PrintJson(const std::vector<Finding>& findings) {
  auto checks = nlohmann::ordered_json::array();
  for (const Finding& finding : findings)
    checks.push_back({{"name", finding.name},
                      {"state", StateName(finding.state)},
                      {"here", finding.here},
                      {"advice", finding.advice}});
  // Paths may not be valid UTF-8.
  fmt::print("{}\n", nlohmann::ordered_json{{"checks", checks}}.dump(
                         2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

void AddDoctorVerb(CLI::App& app) {
  struct Flags {
    std::string directory = ".";
    bool json = false;
  };
  CLI::App* verb = app.add_subcommand("doctor", "Check this machine and suggest improvements");
  const auto flags = std::make_shared<Flags>();
  verb->add_option("--dir", flags->directory,
                   "Measure the disk under this directory, with a temporary file of 64 MiB")
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(
      "Uses no network, except to ask a configured Kubernetes server for its version.\n"
      "Example: renzan doctor --dir runs");
  verb->callback([flags] {
    const std::vector<Finding> findings = Examine(flags->directory);
    flags->json ? PrintJson(findings) : Print(findings);
  });
}

}  // namespace renzan
