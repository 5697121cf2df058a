#pragma once

// What is sent to the API server for a submission or a change. Reads the pod template file,
// otherwise pure.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster {

// The GangJob of a submission: its manifest unchanged, or one made from its job specification. Its
// namespace is the manifest's, else `ns`; `ns_given`: the user asked for `ns`. `needs_image`: false
// for a job that is only imagined.
//
// Throws Error kConfig (see gang_job_manifest.h), or kUsage for flags that a manifest does not
// allow.
nlohmann::json GangJobOf(const Submission& submission, const std::string& ns, bool ns_given,
                         bool needs_image = true);

// The same job again, under a new name.
nlohmann::json RepeatedGangJob(const kubernetes::GangJob& job);

// A change of the job's specification.
struct SpecChange {
  std::string patch;  // of `spec`, as JSON
  std::string what;   // spec::DifferenceText()
  std::string note;   // when it applies; empty: at once
};
// Throws Error kConfig, or kUsage for what cannot be changed of a job with workers.
SpecChange SpecChangeOf(const kubernetes::GangJob& job, const spec::JobChange& change);

}  // namespace renzan::cluster
