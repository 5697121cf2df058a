#pragma once

// What a job consisted of, so that it can be run again given only its id. Thread-safe.

#include <map>
#include <string>

#include "renzan/cluster/local/controller/access.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

// `exported`: the variables of the submitter that the job gets, of which the manifest has the
// names. JSON: command, the program that it names and its SHA-256 (null if it cannot be found or
// the caller may not read it), directory, user, machine, version, and the specification.
std::string MakeManifest(const spec::JobSpec& spec, const std::string& submit_dir,
                         const Caller& caller,
                         const std::map<std::string, std::string>& exported = {});

}  // namespace renzan::cluster::local
