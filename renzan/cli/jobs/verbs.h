#pragma once

// The sub-verbs of `renzan job`.

namespace CLI {
class App;
}

namespace renzan {

void AddJobShowVerb(CLI::App& job);
void AddJobExplainVerb(CLI::App& job);
void AddJobLogsVerb(CLI::App& job);

}  // namespace renzan
