#pragma once

// Where the controller's right to run jobs is bound namespace by namespace
// (deploy/kubernetes/controller-by-namespace): in which it has that right, as the API server says.
//
// For one thread.

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/requests.h"

namespace renzan::cluster::kubernetes {

// How a reason that names a missing right begins. Clients cannot ask for somebody else.
inline constexpr std::string_view kLacksRight = "the controller has no right to";

class NamespaceRights {
 public:
  // `limited`: otherwise it has the right everywhere, and nobody is asked.
  explicit NamespaceRights(bool limited) : limited_(limited) {}

  // Asks about those of the namespaces whose answers are missing or old. Whether an answer differs
  // from the last one.
  bool Refresh(const std::set<std::string>& namespaces, Requests& requests, TimeMs now);
  // When Refresh() has something to ask again; kNever: not at all.
  TimeMs NextAsk() const;

  // Why jobs of the namespace cannot run, in one line; "": they can.
  std::string WhyNot(const std::string& ns) const;

 private:
  struct Answer {
    bool known = false;
    std::string why_not;
    TimeMs ask_again = 0;
  };

  const bool limited_;
  std::map<std::string, Answer> answers_;
};

}  // namespace renzan::cluster::kubernetes
