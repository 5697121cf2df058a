// renzan cluster up|down|status|usage|override|token|challenge|what-if|replay|kubernetes

#include <CLI/CLI.hpp>

#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/verbs.h"

namespace renzan {

void AddClusterVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb =
      app.add_subcommand("cluster", "Turn this machine into a cluster, and operate it");
  verb->require_subcommand(1);
  AddClusterUpVerb(*verb);
  AddClusterDownVerb(*verb);
  AddClusterStatusVerb(*verb);
  AddClusterUsageVerb(*verb);
  AddClusterOverrideVerb(*verb);
  AddClusterTokenVerb(*verb);
  AddClusterChallengeVerb(*verb);
  AddClusterWhatIfVerb(*verb);
  AddClusterReplayVerb(*verb, exit_status);
  AddClusterKubernetesVerb(*verb);
}

}  // namespace renzan
