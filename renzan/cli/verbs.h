#pragma once

// One verb, one file. Each function adds its verb (and sub-verbs) to the program's command line;
// the work happens in the verb's callback, which throws Error or sets `exit_status`.

#include <string>

namespace CLI {
class App;
}

namespace renzan {

void AddDataVerb(CLI::App& app);                          // data import|schema|synth|inspect|verify
void AddCheckpointVerb(CLI::App& app, int& exit_status);  // checkpoint list|verify|diff|export
void AddTrainVerb(CLI::App& app, int& exit_status);
void AddRunVerb(CLI::App& app, int& exit_status);  // workers of any program
void AddEvalVerb(CLI::App& app, int& exit_status);
void AddPredictVerb(CLI::App& app, int& exit_status);
void AddBenchVerb(CLI::App& app, int& exit_status);  // bench machine|train
void AddPlanVerb(CLI::App& app, int& exit_status);
void AddSimulateVerb(CLI::App& app);

// The job system.
void AddSubmitVerb(CLI::App& app, int& exit_status);
void AddJobsVerb(CLI::App& app);
void AddJobVerb(CLI::App& app, int& exit_status);  // job show|explain|logs|cancel|...
void AddPodRunVerb(CLI::App& app, int& exit_status);
void AddNodesVerb(CLI::App& app);                      // nodes [cordon|drain|fail|restore]
void AddClusterVerb(CLI::App& app, int& exit_status);  // cluster up|down|status|...
// For `renzan doctor`: what this machine's daemon says of its disk, if that is nearly full, and of
// the history that it keeps; "" if it says nothing, or there is no daemon.
struct DaemonFacts {
  std::string disk_trouble = {}, history = {};
};
DaemonFacts FactsOfDaemon();

}  // namespace renzan
