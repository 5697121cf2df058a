#pragma once

// A program that provides credentials, as users[].user.exec of a kubeconfig file describes it.

#include <string>
#include <vector>

namespace renzan::cluster::kubernetes {

enum class InteractiveMode { kNever, kIfAvailable, kAlways };

struct ExecConfig {
  std::string where;                          // for messages: "config: users.dev.user.exec"
  std::vector<std::string> argv;              // the command may be a name that PATH leads to
  std::vector<std::string> environment = {};  // "NAME=value", in addition to ours
  std::string api_version;                    // what it speaks: one of kExecApiVersions
  // What it is told about the cluster, as JSON; empty: nothing.
  std::string cluster = {};
  InteractiveMode interactive = InteractiveMode::kIfAvailable;
  std::string install_hint = {};
};

inline constexpr const char* kExecApiVersions[] = {"client.authentication.k8s.io/v1",
                                                   "client.authentication.k8s.io/v1beta1"};

}  // namespace renzan::cluster::kubernetes
