#include "renzan/cluster/backend/choice.h"

#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

std::string Value(const client::Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? "" : value;
}

bool HasDaemonState(const client::Environment& environment,
                    const std::function<bool(const std::string&)>& exists) {
  for (const char* variable : {"RENZAN_SOCKET", "RENZAN_STATE_DIR", "RENZAN_TOKEN_FILE"})
    if (!Value(environment, variable).empty()) return true;
  if (Value(environment, "HOME").empty() && Value(environment, "XDG_STATE_HOME").empty())
    return false;
  return exists(client::StateDirectory(environment));
}

bool HasKubeConfig(const client::Environment& environment,
                   const std::function<bool(const std::string&)>& exists) {
  // If the variable is set, use the file even if it is missing: then a message says so.
  if (!Value(environment, "KUBECONFIG").empty()) return true;
  const std::string home = Value(environment, "HOME");
  return !home.empty() && exists(home + "/.kube/config");
}

}  // namespace

ClusterChoice ChooseCluster(const ClusterFlags& flags, const client::Environment& environment,
                            const std::function<bool(const std::string& path)>& exists) {
  ClusterChoice choice;
  std::string name = flags.cluster;
  if (!name.empty()) choice.named_by = "--cluster";
  if (name.empty() && flags.socket.empty()) {
    name = Value(environment, "RENZAN_CLUSTER");
    if (!name.empty()) choice.named_by = "RENZAN_CLUSTER";
  }
  if (name.empty())
    choice.kubernetes = flags.socket.empty() && !HasDaemonState(environment, exists) &&
                        HasKubeConfig(environment, exists);
  else
    choice.kubernetes = name != "local";
  if (choice.kubernetes && name != "kubernetes") choice.context = name;
  if (choice.kubernetes && !flags.socket.empty())
    Fail(ErrorCode::kUsage,
         "--socket is for a daemon, --cluster {} for Kubernetes: give one of them", name);
  if (!choice.kubernetes && !flags.ns.empty())
    Fail(ErrorCode::kUsage,
         "--namespace is for Kubernetes, and this is a daemon: choose a cluster with --cluster");
  return choice;
}

}  // namespace renzan::cluster
