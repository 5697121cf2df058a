#pragma once

// The status of an object that only the controller writes, whenever it is not what it should be.
// For one thread.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/kubernetes/controller/requests.h"

namespace renzan::cluster::kubernetes {

class KeptStatus {
 public:
  // As a watch shows it. False: it is what was written here, and no news.
  bool Put(std::shared_ptr<const Json> object);
  const Json& object() const { return *object_; }
  const Json& status() const;
  // Writes it if the server has another one. False: it could not be written.
  bool Set(const Kind& kind, Json status, Requests& requests);

 private:
  friend bool SetStatuses(const Kind&, std::vector<std::pair<KeptStatus*, Json>>, Requests&);
  bool Holds(const Json& wanted) const;
  void Written(Json wanted, Json answer);

  std::shared_ptr<const Json> object_;
  // As it was sent last, until a watch shows another: a server whose definition is older keeps only
  // part of it, and would be sent it again and again.
  std::shared_ptr<const Json> written_;
  // Of our own writes, until a watch shows them.
  std::set<std::string> own_versions_;
};

// Of several objects, at the same time. False: some could not be written.
bool SetStatuses(const Kind& kind, std::vector<std::pair<KeptStatus*, Json>> statuses,
                 Requests& requests);

}  // namespace renzan::cluster::kubernetes
