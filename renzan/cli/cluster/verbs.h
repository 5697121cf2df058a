#pragma once

// The sub-verbs of `renzan cluster`.

namespace CLI {
class App;
}

namespace renzan {

void AddClusterUpVerb(CLI::App& cluster);
void AddClusterDownVerb(CLI::App& cluster);
void AddClusterStatusVerb(CLI::App& cluster);
void AddClusterUsageVerb(CLI::App& cluster);
void AddClusterOverrideVerb(CLI::App& cluster);
void AddClusterTokenVerb(CLI::App& cluster);
void AddClusterChallengeVerb(CLI::App& cluster);
void AddClusterWhatIfVerb(CLI::App& cluster);
void AddClusterReplayVerb(CLI::App& cluster, int& exit_status);
void AddClusterKubernetesVerb(CLI::App& cluster);

}  // namespace renzan
