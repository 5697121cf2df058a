#include "renzan/cli/job_system/library.h"

#include <microhttpd.h>
#include <sqlite3.h>

#include "renzan/base/build_id.h"
#include "renzan/cli/machine/installation.h"
#include "renzan/cli/verb_group.h"
#include "renzan/cli/verbs.h"

extern "C" {

__attribute__((visibility("default"))) const char* renzan_jobs_build() { return renzan::BuildId(); }

__attribute__((visibility("default"))) void renzan_jobs_add_verbs(CLI::App* app, int* exit_status,
                                                                  const renzan::LogFunctions* log) {
  renzan::LogThrough(*log);
  renzan::UseObjectStores();
  renzan::AddVerbGroup(*app, "Jobs", [&] {
    renzan::AddSubmitVerb(*app, *exit_status);
    renzan::AddJobsVerb(*app);
    renzan::AddJobVerb(*app, *exit_status);
    renzan::AddPodRunVerb(*app, *exit_status);
  });
  renzan::AddVerbGroup(*app, "Clusters", [&] {
    renzan::AddClusterVerb(*app, *exit_status);
    renzan::AddNodesVerb(*app);
    renzan::AddSimulateVerb(*app);
  });
}

__attribute__((visibility("default"))) void renzan_jobs_daemon_facts(std::string* disk_trouble,
                                                                     std::string* history) {
  const renzan::DaemonFacts facts = renzan::FactsOfDaemon();
  *disk_trouble = facts.disk_trouble;
  *history = facts.history;
}

__attribute__((visibility("default"))) void renzan_jobs_library_versions(std::string* sqlite,
                                                                         std::string* microhttpd) {
  *sqlite = ::sqlite3_libversion();
  *microhttpd = ::MHD_get_version();
}

}  // extern "C"
