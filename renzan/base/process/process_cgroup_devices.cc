// What a control group keeps from its processes: in version 2 by a BPF program, in version 1 by the
// devices controller.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/process/process_cgroup.h"

namespace renzan {
namespace {

bpf_insn Load(uint8_t to, size_t offset) {
  return {.code = BPF_LDX | BPF_MEM | BPF_W,
          .dst_reg = to,
          .src_reg = BPF_REG_1,  // the context
          .off = static_cast<int16_t>(offset),
          .imm = 0};
}

bpf_insn With(uint8_t code, uint8_t to, unsigned value, size_t skip = 0) {
  return {.code = static_cast<uint8_t>(code | BPF_K),
          .dst_reg = to,
          .src_reg = 0,
          .off = static_cast<int16_t>(skip),
          .imm = static_cast<int32_t>(value)};
}

// Returns 0, which denies the access, for these devices, and 1 for all others.
std::vector<bpf_insn> ProgramAgainst(const std::vector<dev_t>& devices) {
  constexpr uint8_t kResult = BPF_REG_0, kMajor = BPF_REG_2, kMinor = BPF_REG_3, kType = BPF_REG_4;
  constexpr uint8_t kSet = BPF_ALU64 | BPF_MOV, kAnd = BPF_ALU64 | BPF_AND;
  constexpr uint8_t kSkipIf = BPF_JMP | BPF_JEQ, kSkipUnless = BPF_JMP | BPF_JNE;
  constexpr unsigned kTypeBits = 0xffff;  // what is wanted of it is in the others
  const size_t comparisons = 2 * devices.size();
  std::vector<bpf_insn> program = {With(kSet, kResult, 0),
                                   Load(kMajor, offsetof(bpf_cgroup_dev_ctx, major)),
                                   Load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor)),
                                   Load(kType, offsetof(bpf_cgroup_dev_ctx, access_type)),
                                   With(kAnd, kType, kTypeBits),
                                   With(kSkipUnless, kType, BPF_DEVCG_DEV_CHAR, comparisons)};
  for (size_t i = 0; i < devices.size(); ++i) {
    program.push_back(With(kSkipUnless, kMajor, major(devices[i]), 1));
    const size_t later = comparisons - 2 * (i + 1);
    program.push_back(With(kSkipIf, kMinor, minor(devices[i]), later + 1));  // to the end
  }
  program.push_back(With(kSet, kResult, 1));
  program.push_back(With(BPF_JMP | BPF_EXIT, 0, 0));
  return program;
}

bpf_attr NoAttributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

int Bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

// The kernel keeps the program until the group is removed. It asks those of groups around this one,
// and of groups inside it, too.
void DenyByProgram(const std::string& directory, const std::vector<dev_t>& devices) {
  constexpr const char* kCannot =
      "cannot {} a BPF program that keeps processes in {} from devices: {}";
  const std::vector<bpf_insn> instructions = ProgramAgainst(devices);
  bpf_attr load = NoAttributes();
  load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load.insns = reinterpret_cast<uintptr_t>(instructions.data());
  load.insn_cnt = static_cast<uint32_t>(instructions.size());
  load.license = reinterpret_cast<uintptr_t>("Apache-2.0");
  const Descriptor program(Bpf(BPF_PROG_LOAD, load));
  if (!program) Fail(ErrorCode::kOsError, kCannot, "load", directory, std::strerror(errno));
  const Descriptor group(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!group) Fail(ErrorCode::kOsError, "cannot open {}: {}", directory, std::strerror(errno));
  bpf_attr attach = NoAttributes();
  attach.target_fd = static_cast<uint32_t>(group.get());
  attach.attach_bpf_fd = static_cast<uint32_t>(program.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  if (Bpf(BPF_PROG_ATTACH, attach) != 0)
    Fail(ErrorCode::kOsError, kCannot, "attach", directory, std::strerror(errno));
}

// A list of what is allowed may allow it through a wildcard ("c 195:* rwm"), which a denial does
// not change. "a *:* rwm" stands for all but what was denied.
bool IsStillAllowed(const std::string& directory, dev_t device) {
  std::ifstream list(directory + "/devices.list");
  const std::string number = std::to_string(major(device));
  const std::string wildcards[] = {fmt::format("c {}:* ", number),
                                   fmt::format("c *:{} ", minor(device)), "c *:* "};
  for (std::string line; std::getline(list, line);)
    for (const std::string& wildcard : wildcards)
      if (line.starts_with(wildcard)) return true;
  return false;
}

}  // namespace

void ProcessCgroup::Deny(const std::vector<dev_t>& devices) const {
  if (group_.v2) return DenyByProgram(group_.directory, devices);
  for (const dev_t device : devices) {
    const std::string rule = fmt::format("c {}:{} rwm", major(device), minor(device));
    if (const int error = Write("devices.deny", rule); error != 0)
      Fail(ErrorCode::kOsError, "cannot write {} to {}/devices.deny: {}", rule, group_.directory,
           std::strerror(error));
    if (IsStillAllowed(group_.directory, device))
      Fail(ErrorCode::kOsError, "{0}/devices.deny has no effect on {1}: {0}/devices.list has *",
           group_.directory, rule);
  }
}

}  // namespace renzan
