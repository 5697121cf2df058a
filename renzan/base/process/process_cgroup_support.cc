#include "renzan/base/process/process_cgroup_support.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/process/cgroup_probe.h"
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

// Why a child in the group did not become another program, if so.
std::optional<StartError> StartIn(const ProcessCgroup& group) {
  const Descriptor entrance = group.Entrance();
  const auto started =
      StartChild({.argv = {"true"}, .environment = OwnEnvironment(), .cgroups = {entrance.get()}});
  if (const auto* error = std::get_if<StartError>(&started)) return *error;
  waitpid(std::get<pid_t>(started), nullptr, 0);
  return std::nullopt;
}

// "": a child can enter the group.
std::string WhyNoEntrance(const ProcessCgroup& group) {
  const std::optional<StartError> error = StartIn(group);
  // Whatever comes after entering it does not matter here.
  if (!error || error->step != StartError::Step::kCgroup) return "";
  return fmt::format("no process can enter {}: {}", group.directory(), std::strerror(error->error));
}

// "": a child in the group cannot open these, nor /dev/null, which is its standard input.
std::string WhyNoDenial(const ProcessCgroup& group, std::vector<dev_t> devices) {
  devices.push_back(makedev(1, 3));
  group.Deny(devices);
  const std::optional<StartError> error = StartIn(group);
  if (error && error->step == StartError::Step::kOutput && error->error == EPERM) return "";
  if (const std::string why = WhyNoEntrance(group); !why.empty()) return why;
  return fmt::format("processes in {} open devices that they were denied", group.directory());
}

// "": groups can be made inside `parent`, and nothing is wrong with one.
std::string WhyNot(const Cgroup& parent,
                   const std::function<std::string(const ProcessCgroup&)>& wrong_with) {
  RemoveLeftProbes(parent.directory);
  const ProcessCgroup group({parent.directory + "/" + NewProbeName(), parent.v2});
  if (mkdir(group.directory().c_str(), 0755) != 0)
    return fmt::format("no groups can be made in {}: {}", parent.directory, std::strerror(errno));
  std::string why;
  try {
    why = wrong_with(group);
  } catch (const Error& error) {
    why = error.what();
  }
  group.Remove();
  return why;
}

std::string WhyNot(const Cgroup& parent, const std::string& file) {
  return WhyNot(parent, [&](const ProcessCgroup& group) {
    return Exists(group.directory() + "/" + file)
               ? WhyNoEntrance(group)
               : fmt::format("groups in {} have no {}", parent.directory, file);
  });
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

CgroupSupport::Parent FindDevices(const CgroupSupportOptions& options) {
  std::string why_not;
  for (const bool v2 : {true, false}) {
    const std::optional<Cgroup> group = OwnGroup("devices", v2, options);
    if (!group) continue;
    const std::string why = WhyNot(
        *group, [&](const ProcessCgroup& inside) { return WhyNoDenial(inside, options.devices); });
    if (why.empty()) return {.group = *group, .why_not = ""};
    if (why_not.empty()) why_not = why;
  }
  if (why_not.empty())
    why_not = "neither cgroup2 nor the devices controller of version 1 is mounted";
  return Without(why_not);
}

}  // namespace

CgroupSupport FindCgroupSupport(const CgroupSupportOptions& options) {
  if (!options.parent.empty() && !Exists(options.parent + "/cgroup.controllers"))
    Fail(ErrorCode::kConfig, "{} is no control group of version 2: it has no cgroup.controllers",
         options.parent);
  return {.hold = FindHold(options),
          .cpu = FindLimit("cpu", "cpu.max", "cpu.cfs_quota_us", options),
          .memory = FindLimit("memory", "memory.max", "memory.limit_in_bytes", options),
          .devices = FindDevices(options)};
}

}  // namespace renzan
