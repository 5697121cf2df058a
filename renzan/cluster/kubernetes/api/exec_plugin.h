#pragma once

// Runs a program that provides credentials, and reads what it says:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins

#include <optional>
#include <stop_token>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/api/credentials.h"
#include "renzan/cluster/kubernetes/api/exec_config.h"

namespace renzan::cluster::kubernetes {

// Where the program runs.
struct ExecSurroundings {
  bool terminal = false;  // a person can answer its questions
  double seconds = 60;    // it may take
};
// Those of this process.
ExecSurroundings OwnExecSurroundings();

struct ExecAnswer {
  Credential credential;
  std::optional<double> expires = {};  // Unix seconds
};

// Runs it. Its stderr is the user's. Throws Error, which quotes no argument and nothing of stdout,
// because these can be secrets:
//   kConfig        it does not exist, or its answer is not what the configuration says
//   kNoPermission  it failed
//   kUnavailable   it took too long
//   kTempFail      `stop` was requested
ExecAnswer RunExecPlugin(const ExecConfig& config, const ExecSurroundings& surroundings,
                         const Clock& clock, const std::stop_token& stop);

// For RunExecPlugin(): what the program finds in $KUBERNETES_EXEC_INFO, and what its stdout means.
std::string ExecInfo(const ExecConfig& config, bool interactive);
ExecAnswer ParseExecAnswer(const ExecConfig& config, const std::string& output,
                           double unix_seconds);

}  // namespace renzan::cluster::kubernetes
