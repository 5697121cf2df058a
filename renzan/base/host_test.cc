#include "renzan/base/host.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <map>
#include <vector>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

std::string Seen(const std::vector<std::string>& devices,
                 const std::map<std::string, std::string>& environment = {}) {
  const TemporaryDirectory root;
  CreateDirectories(root / "dev");
  for (const std::string& device : devices) WriteFileAtomically(root / "dev/" + device, "");
  return VisibleGpus(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      root.path());
}

TEST(GpuNumbers, AreInTheOrderOfNames) {
  const TemporaryDirectory root;
  CreateDirectories(root / "dev");
  std::filesystem::create_symlink("/dev/zero", root / "dev/nvidia10");
  std::filesystem::create_symlink("/dev/full", root / "dev/nvidia9");
  std::filesystem::create_symlink("/dev/null", root / "dev/nvidiactl");
  WriteFileAtomically(root / "dev/nvidia11", "no device");
  EXPECT_EQ(GpuNumbers(root.path()), (std::vector<dev_t>{makedev(1, 7), makedev(1, 5), 0}));
}

TEST(VisibleGpus, AreTheSameForProcessesThatSeeTheSame) {
  EXPECT_EQ(Seen({"nvidia0", "nvidia1", "nvidiactl", "sda"}),
            Seen({"nvidia1", "nvidia-uvm", "nvidia0", "sdb"}));
  EXPECT_EQ(Seen({"nvidia0", "nvidia1"}, {{"CUDA_VISIBLE_DEVICES", "1"}}),
            Seen({"nvidia0", "nvidia1"}, {{"CUDA_VISIBLE_DEVICES", "1"}}));
  EXPECT_EQ(Seen({}), "");
}

TEST(VisibleGpus, TellContainersApart) {
  EXPECT_NE(Seen({"nvidia0", "nvidia1"}), Seen({"nvidia2", "nvidia3"}));
  EXPECT_NE(Seen({"nvidia0"}, {{"NVIDIA_VISIBLE_DEVICES", "MIG-1"}}),
            Seen({"nvidia0"}, {{"NVIDIA_VISIBLE_DEVICES", "MIG-2"}}));
}

TEST(VisibleGpus, TellVariablesApart) {
  EXPECT_NE(Seen({"nvidia0", "nvidia1"}, {{"CUDA_VISIBLE_DEVICES", "0,1"}}),
            Seen({"nvidia0", "nvidia1"}, {{"CUDA_VISIBLE_DEVICES", "1,0"}}));
  EXPECT_NE(Seen({"nvidia0", "nvidia1"}),
            Seen({"nvidia0", "nvidia1"}, {{"CUDA_VISIBLE_DEVICES", "0"}}));
}

}  // namespace
}  // namespace renzan
