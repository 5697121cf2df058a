#pragma once

// What the owner of a watch has been told. Turns lists and events into changes, so that the owner
// sees each version of an object at most once, and sees an object as deleted if a later list lacks
// it. For one thread.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

struct WatchChange {
  enum class Type {
    kSynced,    // first, exactly once: `object` is an array of all objects
    kChanged,   // a new object, or a new version of one
    kDeleted,   // its last state; if it was deleted while nobody watched, only the metadata's name,
                // namespace, uid and resourceVersion
    kRelisted,  // without an object: all of them have been listed again, and the differences
                // reported. What the owner knows of an object from elsewhere may stay out of date:
                // if the object was deleted before the list, no change reports that
  };
  Type type;
  std::shared_ptr<const Json> object;  // without managedFields, which would be most of it
};

class KnownObjects {
 public:
  // `deliver` must not throw.
  explicit KnownObjects(std::function<void(WatchChange)> deliver) : deliver_(std::move(deliver)) {}

  // These throw nlohmann's exceptions for an object that Kubernetes would never send.
  void TakeList(Json&& list);
  void TakeEvent(std::string_view type, Json&& object);

  // The version to watch from; empty: list first.
  const std::string& version() const { return version_; }
  // The server no longer has that version, or it is not trusted.
  void Expire() { version_.clear(); }

 private:
  using Name = std::pair<std::string, std::string>;  // namespace, name
  struct Known {
    std::string uid, version;
  };
  static Name NameOf(const Json& object);
  static Json Remains(const Name& name, const Known& known);
  void Change(Json&& object);
  void Remove(std::map<Name, Known>::iterator known, Json&& object);
  void Deliver(WatchChange::Type type, Json&& object) noexcept;

  const std::function<void(WatchChange)> deliver_;
  std::map<Name, Known> known_;
  std::string version_;
  bool synced_ = false;
};

}  // namespace renzan::cluster::kubernetes
