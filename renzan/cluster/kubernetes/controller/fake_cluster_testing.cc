#include "renzan/cluster/kubernetes/controller/fake_cluster_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

[[noreturn]] void Refuse(int status, const std::string& reason, const std::string& what) {
  throw ApiError(status, reason, fmt::format("{}: {}", what, reason), false);
}

std::string VersionOf(const Json& object) {
  return TextAt(object, {"metadata", "resourceVersion"});
}

bool Selects(const Selector& selector, const Json& object) {
  if (selector.labels.empty()) return true;
  const size_t equals = selector.labels.find('=');
  return TextAt(object, {"metadata", "labels", selector.labels.substr(0, equals)}) ==
         selector.labels.substr(equals + 1);
}

}  // namespace

std::string UidOf(const Json& object) { return TextAt(object, {"metadata", "uid"}); }

// --- Objects.

const Json& FakeCluster::Store(const std::string& plural, const Key& key, Json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  Object& stored = objects_[plural][key];
  const char* type = stored ? "MODIFIED" : "ADDED";
  stored = std::make_shared<const Json>(std::move(object));
  changes_[plural].push_back({version_, type, stored});
  if (plural == Pods().plural) Follow(key, *stored);
  Trace(type, *stored);
  return *stored;
}

void FakeCluster::Erase(const std::string& plural, const Key& key) {
  auto& objects = objects_[plural];
  const auto at = objects.find(key);
  Json object = *at->second;
  objects.erase(at);
  Trace("DELETED", object);
  if (plural == Pods().plural) Forget(UidOf(object));
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  changes_[plural].push_back(
      {version_, "DELETED", std::make_shared<const Json>(std::move(object))});
}

void FakeCluster::Trace(const char* what, const Json& object) const {
  if (!traces_) return;
  std::string text;
  for (const std::string& each :
       {TextAt(object, {"spec", "nodeName"}), TextAt(object, {"status", "phase"}),
        At(object, {"status", "placement"}).dump(), TextAt(object, {"status", "message"}),
        TextAt(object, {"reason"}), TextAt(object, {"message"}),
        TextAt(object, {"metadata", "deletionTimestamp"}),
        TextAt(object, {"status", "facts", "writer"}), UidOf(object)})
    if (!each.empty() && each != "null") text += " " + each;
  fmt::print("{:8.1f} {:8} {}/{}{}\n", clock_.MonotonicSeconds(), what,
             TextAt(object, {"metadata", "namespace"}), TextAt(object, {"metadata", "name"}), text);
}

bool FakeCluster::Exists(const Kind& kind, const Key& key) const {
  const auto objects = objects_.find(kind.plural);
  return objects != objects_.end() && objects->second.contains(key);
}

const Json& FakeCluster::Find(const Kind& kind, const std::string& ns,
                              const std::string& name) const {
  if (!Exists(kind, {ns, name})) Refuse(404, "NotFound", kind.plural + " " + name);
  return *objects_.at(kind.plural).at({ns, name});
}

// --- Users.

void FakeCluster::AddJob(const std::string& ns, const std::string& name, Json spec,
                         Program program) {
  const std::string uid = fmt::format("gangjob-{}", ++uids_);
  work_[uid] = {.program = program,
                .saves = IsTrueAt(spec, {"checkpoint", "onStop"}),
                .left = program.work_ms,
                .failures = program.failures};
  Store("gangjobs", {ns, name},
        {{"metadata",
          {{"name", name},
           {"namespace", ns},
           {"uid", uid},
           {"generation", 1},
           {"creationTimestamp", TimeText(clock_.UnixMs())}}},
         {"spec", std::move(spec)}});
}

void FakeCluster::EditJob(const std::string& ns, const std::string& name,
                          const std::function<void(Json& spec)>& edit) {
  Json job = Find(GangJobs(), ns, name);
  edit(job["spec"]);
  work_.at(UidOf(job)).saves = IsTrueAt(job, {"spec", "checkpoint", "onStop"});
  job["metadata"]["generation"] = job["metadata"]["generation"].get<int64_t>() + 1;
  Store("gangjobs", {ns, name}, std::move(job));
}

void FakeCluster::DeleteJob(const std::string& ns, const std::string& name) {
  Find(GangJobs(), ns, name);
  Erase("gangjobs", {ns, name});
}

const Json* FakeCluster::FindJob(const std::string& ns, const std::string& name) const {
  return Exists(GangJobs(), {ns, name}) ? &Find(GangJobs(), ns, name) : nullptr;
}

std::vector<const Json*> FakeCluster::Objects(const Kind& kind) const {
  std::vector<const Json*> found;
  if (const auto at = objects_.find(kind.plural); at != objects_.end())
    for (const auto& [key, object] : at->second) found.push_back(object.get());
  return found;
}

// --- Time.

void FakeCluster::Later(TimeMs after, std::function<void()> request) {
  later_.emplace(clock_.UnixMs() + after, std::move(request));
}

// Objects that belong to a job or node that no longer exists are deleted a while later.
void FakeCluster::CollectGarbage() {
  std::set<std::string> jobs;
  for (const Json* job : Objects(GangJobs())) jobs.insert(UidOf(*job));
  std::vector<std::pair<Key, const Kind*>> orphans;
  for (const Kind* kind : {&Pods(), &Services()})
    for (const Json* object : Objects(*kind))
      for (const Json& owner : At(*object, {"metadata", "ownerReferences"}))
        if (!jobs.contains(TextAt(owner, {"uid"})))
          orphans.push_back(
              {{TextAt(*object, {"metadata", "namespace"}), TextAt(*object, {"metadata", "name"})},
               kind});
  for (const auto& [key, kind] : orphans)
    if (Draw(4) == 0) Delete(*kind, key.first, key.second, "", std::nullopt);
  std::vector<Key> lost;
  for (const auto& [uid, container] : containers_)
    if (!Exists(Nodes(), {"", container.pod.node}))
      lost.emplace_back(container.pod.ns, container.pod.name);
  for (const Key& key : lost)
    if (Draw(10) == 0) Erase("pods", key);
}

std::vector<std::string> FakeCluster::Play() {
  const TimeMs now = clock_.UnixMs();
  while (!later_.empty() && later_.begin()->first <= now) {
    const auto request = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    try {
      request();
    } catch (const ApiError&) {
      // Nobody waits for it.
    }
  }
  std::vector<std::string> uids;
  for (const auto& [uid, container] : containers_) uids.push_back(uid);
  for (const std::string& uid : uids) PlayContainer(uid, now);
  PlayMachines(now);
  PlayPrograms(played_ == 0 ? 0 : now - played_);
  played_ = now;
  CollectGarbage();
  std::vector<std::string> wrong;
  CheckLedger(wrong);
  return wrong;
}

// --- Api.

Json FakeCluster::ListNow(Source source) const {
  Json list = Json::array();
  for (const Json* object : Objects(KindOf(source))) list.push_back(*object);
  return list;
}

void FakeCluster::Authorize(const Kind& kind, const std::string& ns) const {
  if (!allowed_namespace.empty() && ns != allowed_namespace)
    Refuse(403, "Forbidden", kind.plural + " of " + (ns.empty() ? "the cluster" : ns));
}

Json FakeCluster::Get(const Kind& kind, const std::string& ns, const std::string& name,
                      const std::string& subresource) {
  Authorize(kind, ns);
  const Json& object = Find(kind, ns, name);
  if (subresource != "scale") return object;
  return {{"metadata", object["metadata"]},
          {"spec", {{"replicas", NumberAt(object, {"spec", "replicas"})}}}};
}

Json FakeCluster::List(const Kind& kind, const std::string& ns, const Selector& selector) {
  Authorize(kind, ns);
  Json items = Json::array();
  for (const auto& [key, object] : objects_[kind.plural])
    if ((ns.empty() || key.first == ns) && Selects(selector, *object)) items.push_back(*object);
  return {{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", items}};
}

Json FakeCluster::Create(const Kind& kind, const std::string& ns, const Json& given) {
  Authorize(kind, ns);
  Json object = given;
  if (kind.plural == OwnAccessReviews().plural) {
    const Json& asked = At(given, {"spec", "resourceAttributes"});
    const bool creates_pods = asked == Json{{"namespace", TextAt(asked, {"namespace"})},
                                            {"verb", "create"},
                                            {"group", ""},
                                            {"resource", "pods"},
                                            {"subresource", ""}};
    object["status"]["allowed"] =
        !creates_pods || !closed_namespaces.contains(TextAt(asked, {"namespace"}));
    return object;
  }
  if (kind.plural == Pods().plural && closed_namespaces.contains(ns)) {
    ++forbidden;
    Refuse(403, "Forbidden", "pods of " + ns);
  }
  if (const std::string start = TextAt(object, {"metadata", "generateName"}); !start.empty())
    object["metadata"]["name"] = start + std::to_string(uids_);
  const std::string name = TextAt(object, {"metadata", "name"});
  if (Exists(kind, {ns, name})) Refuse(409, "AlreadyExists", name);
  if (!ns.empty()) object["metadata"]["namespace"] = ns;
  object["metadata"]["uid"] = fmt::format("{}-{}", kind.plural, ++uids_);
  object["metadata"]["creationTimestamp"] = TimeText(clock_.UnixMs());
  object["metadata"]["generation"] = 1;
  if (kind.plural == Pods().plural) object["status"] = {{"phase", "Pending"}};
  if (kind.plural == GangJobs().plural)
    work_[UidOf(object)] = {.program = {.work_ms = kHour}, .left = kHour};
  return Store(kind.plural, {ns, name}, std::move(object));
}

Json FakeCluster::Replace(const Kind& kind, const std::string& ns, const Json& object,
                          const std::string& subresource) {
  const std::string name = TextAt(object, {"metadata", "name"});
  Json mine = Find(kind, ns, name);
  if (VersionOf(mine) != VersionOf(object)) Refuse(409, "Conflict", name);
  const char* part = subresource == "status" ? "status" : "spec";
  mine[part] = object[part];
  return Store(kind.plural, {ns, name}, std::move(mine));
}

Json FakeCluster::MergePatch(const Kind& kind, const std::string& ns, const std::string& name,
                             const Json& patch, const std::string& subresource) {
  Authorize(kind, ns);
  if (refuses_scaling && subresource == "scale") Refuse(403, "Forbidden", "quota of machines");
  Json object = Find(kind, ns, name);
  const std::string uid = UidOf(object), version = VersionOf(object);
  object.merge_patch(patch);
  if (UidOf(object) != uid || VersionOf(object) != version) Refuse(409, "Conflict", name);
  if (patch.contains("spec"))
    object["metadata"]["generation"] = NumberAt(object, {"metadata", "generation"}) + 1;
  return Store(kind.plural, {ns, name}, std::move(object));
}

void FakeCluster::Delete(const Kind& kind, const std::string& ns, const std::string& name,
                         const std::string& uid, std::optional<int64_t> grace_seconds) {
  if (!Exists(kind, {ns, name})) return;
  Json object = Find(kind, ns, name);
  if (!uid.empty() && UidOf(object) != uid) Refuse(409, "Conflict", name);
  if (kind.plural != Pods().plural || grace_seconds == 0 ||
      TextAt(object, {"spec", "nodeName"}).empty()) {
    Erase(kind.plural, {ns, name});
    return;
  }
  if (At(object, {"metadata", "deletionTimestamp"}).is_string()) return;
  const int64_t grace =
      PodFrom(object).ended
          ? 0
          : grace_seconds.value_or(NumberAt(object, {"spec", "terminationGracePeriodSeconds"}, 30));
  object["metadata"]["deletionTimestamp"] = TimeText(clock_.UnixMs() + grace * kSecond);
  object["metadata"]["deletionGracePeriodSeconds"] = grace;
  Store(kind.plural, {ns, name}, std::move(object));
}

void FakeCluster::Bind(const std::string& ns, const std::string& name, const std::string& uid,
                       const std::string& node) {
  Json pod = Find(Pods(), ns, name);
  if (checks_uid_of_bindings && UidOf(pod) != uid) Refuse(409, "Conflict", name);
  if (!TextAt(pod, {"spec", "nodeName"}).empty() ||
      At(pod, {"metadata", "deletionTimestamp"}).is_string())
    Refuse(409, "Conflict", name);
  pod["spec"]["nodeName"] = node;
  Store("pods", {ns, name}, std::move(pod));
}

void FakeCluster::Watch(const Kind& kind, const std::string&, const Selector&,
                        const std::string& resource_version,
                        const std::function<void(std::string_view, Json&&)>& take) {
  const int64_t version = std::stoll(resource_version);
  if (version < compacted_) Refuse(410, "Expired", "watch " + kind.plural);
  const std::vector<Change>& changes = changes_[kind.plural];
  auto at = std::upper_bound(changes.begin(), changes.end(), version,
                             [](int64_t v, const Change& change) { return v < change.version; });
  // Events caused by `take` come with the next stream.
  const size_t end = changes.size();
  const std::string newest = std::to_string(version_);
  for (size_t i = at - changes.begin(); i < end; ++i)
    take(changes[i].type, Json(*changes[i].object));
  take("BOOKMARK", {{"metadata", {{"resourceVersion", newest}}}});
}

}  // namespace renzan::cluster::kubernetes
