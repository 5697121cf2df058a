#include "renzan/cli/cluster/cluster_access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cluster/backend/daemon.h"
#include "renzan/cluster/backend/kubernetes.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan {
namespace {

cluster::ClusterChoice Choose(const ClusterFlags& flags) {
  return cluster::ChooseCluster(flags, EnvironmentVariable,
                                [](const std::string& path) { return !IsMissing(path); });
}

}  // namespace

void AddClusterChoice(CLI::App& verb, ClusterFlags& flags) {
  verb.add_option("--cluster", flags.cluster,
                  "local: this machine's daemon; kubernetes: the kubeconfig's current context; "
                  "another name: that context (default: $RENZAN_CLUSTER, else local if there is a "
                  "daemon's state or no kubeconfig)");
  verb.add_option(
      "--namespace", flags.ns,
      "Kubernetes: only this namespace (default: the context's, and all where allowed)");
  AddSocketOption(verb, flags.socket);
}

void AddThisMachineOptions(CLI::App& verb, ClusterFlags& flags) {
  verb.add_option("--cluster", flags.cluster, "Only local: this machine")->group("");
  AddSocketOption(verb, flags.socket);
}

void RequireThisMachine(const ClusterFlags& flags, const std::string& verb) {
  const cluster::ClusterChoice choice = Choose(flags);
  if (choice.kubernetes && !choice.named_by.empty())
    Fail(ErrorCode::kUsage,
         "`renzan {}` needs a daemon on this machine, but {} names a Kubernetes cluster: give "
         "--cluster local (Kubernetes itself is run by its administrators)",
         verb, choice.named_by);
}

std::unique_ptr<Backend> BackendOf(const ClusterFlags& flags) {
  const cluster::ClusterChoice choice = Choose(flags);
  if (!choice.kubernetes)
    return cluster::MakeDaemonBackend(EndpointOf(flags.socket),
                                      cluster::local::UserName(::geteuid()));
  try {
    return cluster::MakeKubernetesBackend(choice.context, flags.ns, EnvironmentVariable);
  } catch (const Error& error) {
    if (choice.named_by.empty()) throw;
    throw error.WithContext(choice.named_by);
  }
}

void PrintDocument(const Document& document) { fmt::print("{}\n", document.dump(2)); }

void FailForUnreadable(const Document& answer) {
  const auto why = answer.value("unreadable", std::vector<std::string>());
  if (!why.empty())
    Fail(ErrorCode::kData, "{} job(s) left out: {}", why.size(), fmt::join(why, "; "));
}

}  // namespace renzan
