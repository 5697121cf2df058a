#pragma once

// Finds out how to reach a cluster: from a kubeconfig file as kubectl reads it, or, in a pod, from
// its service account.
//
// One file is read; several in $KUBECONFIG are not merged. Passwords, impersonation and
// auth-providers are not supported: the message says what to use instead.

#include <functional>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/api/access.h"
#include "renzan/cluster/kubernetes/api/exec_plugin.h"

namespace renzan::cluster::kubernetes {

struct AccessRequest {
  std::string path = {};     // of --kubeconfig; empty: see FindAccess()
  std::string context = {};  // empty: the file's current-context
  // A variable of the environment, or null.
  std::function<const char*(const char* name)> environment;
  // What the caller could do where no configuration is found, besides setting $KUBECONFIG.
  std::string what_else = {};
  // Where a pod finds its service account.
  std::string pod_directory = "/var/run/secrets/kubernetes.io/serviceaccount";
  // Of a program that provides credentials.
  ExecSurroundings surroundings = OwnExecSurroundings();
};

// Reads the file at `path`; if that is empty, the first file of $KUBECONFIG that exists; if the
// variable is unset, ~/.kube/config; if there is none, and no context was asked for, the pod's
// service account.
//
// Throws Error with the file and key and what to do next:
//   kNoInput  a file is missing or cannot be read, or no configuration was found
//   kConfig   the file is invalid, the context is missing, a credential is unsupported or has
//             expired
//   kNoPermission  a token file contains no token
// A program that provides credentials runs with the first request, not yet. `clock` must outlive
// the result.
Access FindAccess(const AccessRequest& request, const Clock& clock = SystemClock());

}  // namespace renzan::cluster::kubernetes
