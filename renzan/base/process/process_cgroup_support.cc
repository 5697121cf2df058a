#include "renzan/base/process/process_cgroup_support.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/process_cgroup.h"

namespace renzan {
namespace {

bool HasController(const std::string& path, std::string_view controller) {
  std::ifstream file(path);
  for (std::string each; file >> each;)
    if (each == controller) return true;
  return false;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// "": a child can enter the group.
std::string WhyNoEntrance(const ProcessCgroup& group) {
  const Descriptor entrance = group.Entrance();
  const auto started =
      StartChild({.argv = {"true"}, .environment = OwnEnvironment(), .cgroups = {entrance.get()}});
  if (const auto* error = std::get_if<StartError>(&started)) {
    // Whatever comes after entering it does not matter here.
    if (error->step != StartError::Step::kCgroup) return "";
    return fmt::format("no process can enter {}: {}", group.directory(),
                       std::strerror(error->error));
  }
  waitpid(std::get<pid_t>(started), nullptr, 0);
  return "";
}

// "": groups can be made inside `parent`, and have this file.
std::string WhyNot(const Cgroup& parent, const std::string& file) {
  // Containers that share the parent may use the same process ids.
  const ProcessCgroup group(
      {fmt::format("{}/renzan-probe-{}-{}", parent.directory, getpid(), SystemClock().UnixMs()),
       parent.v2});
  if (mkdir(group.directory().c_str(), 0755) != 0)
    return fmt::format("no groups can be made in {}: {}", parent.directory, std::strerror(errno));
  std::string why;
  try {
    why = Exists(group.directory() + "/" + file)
              ? WhyNoEntrance(group)
              : fmt::format("groups in {} have no {}", parent.directory, file);
  } catch (const Error& error) {
    why = error.what();
  }
  group.Remove();
  return why;
}

CgroupSupport::Parent Without(const std::string& why) {
  CgroupSupport::Parent parent;
  parent.why_not = why;
  return parent;
}

CgroupSupport::Parent Tried(const Cgroup& parent, const std::string& file) {
  const std::string why = WhyNot(parent, file);
  return why.empty() ? CgroupSupport::Parent{.group = parent, .why_not = ""} : Without(why);
}

std::optional<Cgroup> OwnGroup(std::string_view controller, bool v2,
                               const CgroupSupportOptions& options) {
  if (v2 && !options.parent.empty()) return Cgroup{options.parent, true};
  for (const Cgroup& group : CgroupsOfThisProcess(controller, options.root))
    if (group.v2 == v2) return Cgroup{options.root + group.directory, v2};
  return std::nullopt;
}

CgroupSupport::Parent FindHold(const CgroupSupportOptions& options) {
  std::string why_not;
  for (const bool v2 : {true, false}) {
    const std::optional<Cgroup> group = OwnGroup("freezer", v2, options);
    if (!group) continue;
    const std::string why = WhyNot(*group, v2 ? "cgroup.events" : "freezer.state");
    if (why.empty()) return {.group = *group, .why_not = ""};
    if (why_not.empty()) why_not = why;
    if (v2 && !options.parent.empty()) break;  // no other one than asked for
  }
  if (why_not.empty()) why_not = "neither cgroup2 nor the freezer of version 1 is mounted";
  return Without(why_not);
}

CgroupSupport::Parent FindLimit(std::string_view controller, const char* v2_file,
                                const char* v1_file, const CgroupSupportOptions& options) {
  if (const std::optional<Cgroup> group = OwnGroup(controller, true, options);
      group && HasController(group->directory + "/cgroup.controllers", controller)) {
    const std::string enabled = group->directory + "/cgroup.subtree_control";
    if (!HasController(enabled, controller)) {
      const std::string what = fmt::format("controller {} is not enabled for groups in {}",
                                           controller, group->directory);
      if (!options.enable) return Without(what);
      const int error =
          ProcessCgroup(*group).Write("cgroup.subtree_control", fmt::format("+{}", controller));
      if (error == EBUSY)
        return Without(what + ", which has processes of its own: name a group without");
      if (error != 0) return Without(fmt::format("{}: {}", what, std::strerror(error)));
    }
    return Tried(*group, v2_file);
  }
  const std::optional<Cgroup> group = OwnGroup(controller, false, options);
  return group ? Tried(*group, v1_file)
               : Without(fmt::format("no controller {} is available", controller));
}

}  // namespace

CgroupSupport FindCgroupSupport(const CgroupSupportOptions& options) {
  if (!options.parent.empty() && !Exists(options.parent + "/cgroup.controllers"))
    Fail(ErrorCode::kConfig, "{} is no control group of version 2: it has no cgroup.controllers",
         options.parent);
  return {.hold = FindHold(options),
          .cpu = FindLimit("cpu", "cpu.max", "cpu.cfs_quota_us", options),
          .memory = FindLimit("memory", "memory.max", "memory.limit_in_bytes", options)};
}

}  // namespace renzan
