#pragma once

// The functions of librenzan_jobs.so, which has the verbs of the job system. It is of the same
// build as the program, so that C++ objects and exceptions may pass between them.

#include <string>

#include "renzan/base/log.h"

namespace CLI {
class App;
}

extern "C" {
// BuildId(); the only function that a program of another build may call
const char* renzan_jobs_build();
// Adds the verbs to `app`; they set `exit_status`, and log through `log`.
void renzan_jobs_add_verbs(CLI::App* app, int* exit_status, const renzan::LogFunctions* log);
void renzan_jobs_daemon_facts(std::string* disk_trouble, std::string* history);
void renzan_jobs_library_versions(std::string* sqlite, std::string* microhttpd);
}
