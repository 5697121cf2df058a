#pragma once

// The control groups that tell whether others can be made (FindCgroupSupport). A process that is
// killed while it has one leaves it behind, empty: a later one removes it.

#include <sys/types.h>

#include <string>

namespace renzan {

// The name of a group of this process, which no other has had. Containers that share the parent may
// use the same process ids, and processes of one container get the ids of others that have ended:
// so it carries the namespace of the ids and the time of the start, too.
std::string NewProbeName();

// Removes the groups of that form inside `directory` that are empty and whose process has ended.
// Those of other namespaces stay: nobody here can tell.
void RemoveLeftProbes(const std::string& directory);

}  // namespace renzan
