#pragma once

// What may be changed of a job after its submission.

#include <string>
#include <string_view>

#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::spec {

// Values as in a job's specification; empty: stays as it is.
struct JobChange {
  std::string priority = {}, queue = {}, timeout = {};
};

// The specification with the change. `name` is used in messages. Throws Error kConfig for a value
// that a specification could not have.
JobSpec WithChange(std::string_view yaml, const std::string& name, const JobChange& change);

// "priority 0 -> 5, timeout 0s -> 2h"; "" if they do not differ in what a change may change.
std::string DifferenceText(const JobSpec& before, const JobSpec& after);

}  // namespace renzan::cluster::spec
