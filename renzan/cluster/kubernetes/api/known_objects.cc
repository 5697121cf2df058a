#include "renzan/cluster/kubernetes/api/known_objects.h"

#include <nlohmann/json.hpp>
#include <set>

namespace renzan::cluster::kubernetes {
namespace {

std::string TextAt(const Json& object, const char* key) {
  const Json& metadata = object.at("metadata");
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->get<std::string>();
}

// They are most of an object's text, and nobody reads them.
void DropManagedFields(Json& object) { object.at("metadata").erase("managedFields"); }

}  // namespace

KnownObjects::Name KnownObjects::NameOf(const Json& object) {
  return {TextAt(object, "namespace"), TextAt(object, "name")};
}

Json KnownObjects::Remains(const Name& name, const Known& known) {
  Json metadata = {{"name", name.second}, {"uid", known.uid}, {"resourceVersion", known.version}};
  if (!name.first.empty()) metadata["namespace"] = name.first;
  return {{"metadata", std::move(metadata)}};
}

void KnownObjects::TakeList(Json&& list) {
  Json& items = list.at("items");
  for (Json& item : items) DropManagedFields(item);
  std::string version = list.at("metadata").at("resourceVersion").get<std::string>();
  if (!synced_) {
    known_.clear();
    for (const Json& item : items)
      known_[NameOf(item)] = {TextAt(item, "uid"), TextAt(item, "resourceVersion")};
    Deliver(WatchChange::Type::kSynced, std::move(items));
    synced_ = true;
  } else {
    std::set<Name> listed;
    for (const Json& item : items) listed.insert(NameOf(item));
    // Deletions first, so that what they occupied is free for what follows.
    for (auto known = known_.begin(); known != known_.end();) {
      const auto next = std::next(known);
      if (!listed.contains(known->first)) Remove(known, Remains(known->first, known->second));
      known = next;
    }
    for (Json& item : items) Change(std::move(item));
    deliver_({WatchChange::Type::kRelisted, nullptr});
  }
  version_ = std::move(version);
}

void KnownObjects::TakeEvent(std::string_view type, Json&& object) {
  std::string version = TextAt(object, "resourceVersion");
  if (type == "DELETED") {
    const auto known = known_.find(NameOf(object));
    DropManagedFields(object);
    if (known != known_.end()) Remove(known, std::move(object));
  } else if (type == "ADDED" || type == "MODIFIED") {
    DropManagedFields(object);
    Change(std::move(object));
  }
  // Only now: if the object is invalid, the event has not been handled.
  version_ = std::move(version);
}

void KnownObjects::Change(Json&& object) {
  const Name name = NameOf(object);
  Known now{TextAt(object, "uid"), TextAt(object, "resourceVersion")};
  if (const auto known = known_.find(name); known != known_.end()) {
    if (known->second.uid == now.uid && known->second.version == now.version) return;
    if (known->second.uid != now.uid) Remove(known, Remains(name, known->second));
  }
  known_[name] = std::move(now);
  Deliver(WatchChange::Type::kChanged, std::move(object));
}

void KnownObjects::Remove(std::map<Name, Known>::iterator known, Json&& object) {
  known_.erase(known);
  Deliver(WatchChange::Type::kDeleted, std::move(object));
}

// noexcept: an exception of the owner must not be taken for one of the server's.
void KnownObjects::Deliver(WatchChange::Type type, Json&& object) noexcept {
  deliver_({type, std::make_shared<const Json>(std::move(object))});
}

}  // namespace renzan::cluster::kubernetes
