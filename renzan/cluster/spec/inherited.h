#pragma once

// What a job takes over from the process that submitted it, as if it had been started there.

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/resource_limits.h"

namespace renzan::cluster::spec {

struct Inherited {
  std::map<std::string, std::string> environment;
  mode_t umask = 022;
  ResourceLimits limits;
  int niceness = 0;
  bool operator==(const Inherited&) const = default;
};

// The variables of `environment` that a job gets whose key `export` is `exported`: "ALL" (also ""),
// "NONE", or names separated by commas. ALL is all but those that describe the submitter's shell
// ("PWD") or, if it runs in a job, that job ("RANK"), and those that are not UTF-8, whose names are
// added to `not_utf8`. Throws Error kUsage for a name that is not set, that is not UTF-8, or that
// the job system sets itself.
std::map<std::string, std::string> Exported(const std::string& exported,
                                            const std::map<std::string, std::string>& environment,
                                            std::vector<std::string>& not_utf8);

// As JSON. The environment must be UTF-8.
std::string InheritedToJson(const Inherited& inherited);
// Throws Error kData with what is wrong.
Inherited InheritedFromJson(std::string_view json);

}  // namespace renzan::cluster::spec
