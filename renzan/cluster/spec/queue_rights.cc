#include "renzan/cluster/spec/queue_rights.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/names.h"

namespace renzan::cluster::spec {
namespace {

using Names = std::vector<std::string>;

// A user who may use hundreds of queues is not told them all.
constexpr size_t kMostQueuesNamed = 8;

void DescribeNames(ConfigFields& fields, const char* key, Names& names, bool& given,
                   const char* doc) {
  std::optional<Names> list = given ? std::optional(names) : std::nullopt;
  fields.Field(key, &list, doc);
  given = list.has_value();
  names = list.value_or(Names());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    fields.Require(!name.empty() && IsOneLine(name), key, "has a name that is empty or no line");
}

void DescribeMembers(ConfigFields& fields, std::optional<QueueMembers>& rights, bool namespaces) {
  fields.Require(
      !fields.IsEmptySection("members"), "members",
      "is there, but empty: nobody could use the queue; name users or groups, or leave it "
      "out for everybody");
  fields.Section(
      "members",
      [&](ConfigFields& section) {
        QueueMembers members = rights.value_or(QueueMembers());
        const bool restricted = rights.has_value();
        // Which list is printed as given does not matter: they are one set of members.
        bool users = restricted, groups = restricted, spaces = restricted && namespaces;
        DescribeNames(section, "users", members.users, users, "names, such as [ann, bob]");
        DescribeNames(section, "groups", members.groups, groups,
                      "names; whoever is in one of them");
        if (namespaces) DescribeNames(section, "namespaces", members.namespaces, spaces, "");
        if (!users && !groups && !spaces) return rights.reset();
        rights = std::move(members);
        section.Require(*rights != QueueMembers(), "users",
                        "and the other lists of members are empty: nobody could use the queue; "
                        "name somebody, or leave members out for everybody");
      },
      "who may use it, beside whoever administers the cluster; ~ everywhere: everybody");
}

bool Contains(const Names& names, const std::string& name) {
  return std::binary_search(names.begin(), names.end(), name);
}

bool HasPersons(const QueueMembers& members) {
  return !members.users.empty() || !members.groups.empty();
}

bool IsMember(const QueueMembers& members, const Submitter& submitter) {
  const auto& [user, groups, ns, administrator, max_priority, checked] = submitter;
  if (!ns.empty() && Contains(members.namespaces, ns)) return true;
  if (user.empty()) return checked == Submitter::Checked::kYes && HasPersons(members);
  return Contains(members.users, user) ||
         std::any_of(groups.begin(), groups.end(),
                     [&](const std::string& group) { return Contains(members.groups, group); });
}

bool MayUse(const QueueRights& rights, const Submitter& submitter) {
  return submitter.administrator || !rights.members || IsMember(*rights.members, submitter);
}

// The key of a queue's right, as whoever administers this kind of cluster writes it.
std::string KeyOf(const Queue& queue, const Submitter& submitter, const char* in_yaml,
                  const char* in_spec) {
  return submitter.ns.empty() ? fmt::format("queues.{}.{}", queue.name, in_yaml)
                              : fmt::format("spec.{} of the Queue", in_spec);
}

std::string WhoOf(const Submitter& submitter) {
  if (submitter.ns.empty()) return fmt::format("user '{}'", submitter.user);
  if (submitter.user.empty()) return fmt::format("namespace '{}'", submitter.ns);
  return fmt::format("user '{}' in namespace '{}'", submitter.user, submitter.ns);
}

const char* WhoMayChangeIt(const Submitter& submitter) {
  return submitter.ns.empty() ? "the operator" : "an administrator";
}

std::string WhyNoMember(const Queue& queue, std::span<const Queue> queues,
                        const Submitter& submitter) {
  if (submitter.user.empty() && submitter.checked == Submitter::Checked::kTooEarly &&
      HasPersons(*queue.rights.members))
    return fmt::format(
        "queue '{}' is for its members, and who submitted this job was not checked, since it was "
        "in the queue before they were ({}; namespace '{}' is none of them): one of them has to "
        "create it again, or move it to another queue and back",
        queue.name, KeyOf(queue, submitter, "members", "members"), submitter.ns);
  Names others;
  for (const Queue& other : queues)
    if (!other.removed && !other.name.empty() && !IsParent(queues, other) &&
        MayUse(other.rights, submitter))
      others.push_back(other.name);
  const bool too_many = others.size() > kMostQueuesNamed;
  if (too_many) others.resize(kMostQueuesNamed);
  return fmt::format(
      "queue '{}' is for its members, and {} is none of them ({}): {}ask {} to be one", queue.name,
      WhoOf(submitter), KeyOf(queue, submitter, "members", "members"),
      others.empty()
          ? ""
          : fmt::format("use {}{}, or ", fmt::join(others, " or "), too_many ? " or others" : ""),
      WhoMayChangeIt(submitter));
}

bool IsBelow(const Queue& queue, const Queue& parent, std::span<const Queue> queues) {
  for (const Queue* at = &queue; at->parent;) {
    at = &queues[static_cast<size_t>(*at->parent)];
    if (at->name == parent.name) return true;
  }
  return false;
}

std::string WhyParentRefuses(const Queue& parent, std::span<const Queue> queues,
                             const Submitter& submitter) {
  Names its;
  for (const Queue& queue : queues)
    if (IsBelow(queue, parent, queues) && !IsParent(queues, queue) &&
        MayUse(queue.rights, submitter))
      its.push_back(queue.name);
  return fmt::format("queue '{}' is a parent, and takes no jobs itself: {}", parent.name,
                     its.empty() ? "you may use none of its queues"
                                 : fmt::format("use {}", fmt::join(its, " or ")));
}

std::string WhyPriority(const Queue& queue, int priority, const Submitter& submitter) {
  const std::string of_queue = KeyOf(queue, submitter, "max_priority", "maxPriority");
  const std::string limit = queue.rights.max_priority ? of_queue
                            : submitter.ns.empty()
                                ? fmt::format("limits.max_priority; {} would replace it", of_queue)
                                : fmt::format(
                                      "limits.maxPriority of the ClusterPolicy 'default'; "
                                      "{} would replace it",
                                      of_queue);
  return fmt::format(
      "priority {}: in queue '{}', jobs of {} may have at most {} ({}): ask for less, or {}",
      priority, queue.name, WhoOf(submitter), MostPriority(queue.rights, submitter), limit,
      submitter.ns.empty() ? "ask the operator, who may have more or raise it"
                           : fmt::format("ask an administrator to raise it, or to add '{}' to "
                                         "limits.exemptNamespaces",
                                         submitter.ns));
}

}  // namespace

void DescribeRights(ConfigFields& fields, QueueRights& rights, bool namespaces) {
  DescribeMembers(fields, rights.members, namespaces);
  fields.Field("max_priority", &rights.max_priority,
               "of its jobs, except for whoever administers the cluster; ~: limits.max_priority");
  fields.Require(!rights.max_priority || (*rights.max_priority >= -kMaxPriority &&
                                          *rights.max_priority <= kMaxPriority),
                 "max_priority", fmt::format("must be from {} to {}", -kMaxPriority, kMaxPriority));
  bool not_preemptible = !rights.only_preemptible;
  fields.Field("not_preemptible", &not_preemptible, "it takes jobs with preemptible: false");
  rights.only_preemptible = !not_preemptible;
}

int64_t MostPriority(const QueueRights& rights, const Submitter& submitter) {
  if (submitter.administrator) return kMaxPriority;
  return rights.max_priority ? *rights.max_priority : submitter.max_priority;
}

bool IsParent(std::span<const Queue> queues, const Queue& queue) {
  return std::ranges::any_of(queues, [&](const Queue& other) {
    return other.parent && queues[static_cast<size_t>(*other.parent)].name == queue.name;
  });
}

std::string WhyQueueRefuses(const Queue& queue, std::span<const Queue> queues, const JobSpec& spec,
                            const Submitter& submitter) {
  if (IsParent(queues, queue)) return WhyParentRefuses(queue, queues, submitter);
  if (!MayUse(queue.rights, submitter)) return WhyNoMember(queue, queues, submitter);
  if (spec.priority > MostPriority(queue.rights, submitter))
    return WhyPriority(queue, spec.priority, submitter);
  if (!spec.preemptible && queue.rights.only_preemptible)
    return fmt::format("preemptible: false: jobs in queue '{}' must be preemptible ({})",
                       queue.name, KeyOf(queue, submitter, "not_preemptible", "notPreemptible"));
  return "";
}

std::vector<std::string> CheckMembers(const std::map<std::string, QueueRights>& queues,
                                      const WhyNobody& of_user, const WhyNobody& of_group) {
  std::vector<std::string> nobodies;
  for (const auto& [queue, rights] : queues) {
    if (!rights.members) continue;
    bool has_any = false;
    Names whys;
    const auto check = [&](const char* key, const Names& names, const WhyNobody& why_nobody) {
      for (const std::string& name : names) {
        const std::string why = why_nobody(name);
        has_any |= why.empty();
        if (!why.empty())
          whys.push_back(fmt::format("queues.{}.members.{} has '{}': {}", queue, key, name, why));
      }
    };
    check("users", rights.members->users, of_user);
    check("groups", rights.members->groups, of_group);
    if (!has_any)
      Fail(ErrorCode::kConfig,
           "{}; so nobody could use queue '{}': correct the names, or leave members out for "
           "everybody",
           fmt::join(whys, "; "), queue);
    nobodies.insert(nobodies.end(), whys.begin(), whys.end());
  }
  return nobodies;
}

}  // namespace renzan::cluster::spec
