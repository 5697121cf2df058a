#pragma once

// The sub-verbs of `renzan job`.

#include <string>

namespace CLI {
class App;
}

namespace renzan {

// The job that the verb is about.
void AddJobOption(CLI::App& verb, std::string& job);

void AddJobShowVerb(CLI::App& job);
void AddJobExplainVerb(CLI::App& job);
void AddJobLogsVerb(CLI::App& job);
void AddJobUpdateVerb(CLI::App& job);
void AddJobWaitVerb(CLI::App& job, int& exit_status);

}  // namespace renzan
