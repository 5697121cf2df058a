#pragma once

// The status of an object that only the controller writes; written whenever it is not as it should
// be. For one thread.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/kubernetes/controller/requests.h"

namespace renzan::cluster::kubernetes {

class KeptStatus {
 public:
  // Takes the object as a watch shows it. False: it was written here, and is not news.
  bool Put(std::shared_ptr<const Json> object);
  const Json& object() const { return *object_; }
  const Json& status() const;
  // Writes the status if the server has another one. False: it could not be written.
  bool Set(const Kind& kind, Json status, Requests& requests);

 private:
  friend bool SetStatuses(const Kind&, std::vector<std::pair<KeptStatus*, Json>>, Requests&);
  bool Holds(const Json& wanted) const;
  void Written(Json wanted, Json answer);

  std::shared_ptr<const Json> object_;
  // As it was last sent, until a watch shows another version: a server with an older definition
  // keeps only part of it, and would otherwise be sent it again and again.
  std::shared_ptr<const Json> written_;
  // Versions written by us that no watch has shown yet.
  std::set<std::string> own_versions_;
};

// Sets the statuses of several objects concurrently. False: some could not be written.
bool SetStatuses(const Kind& kind, std::vector<std::pair<KeptStatus*, Json>> statuses,
                 Requests& requests);

}  // namespace renzan::cluster::kubernetes
