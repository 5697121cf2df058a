#pragma once

// Reads users[].user.exec of a kubeconfig file.

#include "renzan/cluster/kubernetes/api/access.h"
#include "renzan/cluster/kubernetes/api/config_section.h"
#include "renzan/cluster/kubernetes/api/exec_config.h"

namespace renzan::cluster::kubernetes {

// `cluster` and `access`: what the program may be told about the cluster.
ExecConfig ReadExec(const Section& exec, const Section& cluster, const Access& access);

}  // namespace renzan::cluster::kubernetes
