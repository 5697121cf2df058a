#include "renzan/cli/machine/gpus.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "renzan/base/error.h"
#include "renzan/base/host.h"
#include "renzan/cuda/load.h"

namespace renzan {
namespace {

// "Model:           NVIDIA H200", one file for each GPU.
std::map<std::string, int> Models(const std::string& root) {
  std::map<std::string, int> models;
  std::error_code error;
  for (const auto& gpu :
       std::filesystem::directory_iterator(root + "/proc/driver/nvidia/gpus", error)) {
    std::ifstream file(gpu.path() / "information");
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("Model:")) continue;
      const size_t begin = line.find_first_not_of(" \t", 6);
      ++models[begin == std::string::npos ? "GPU" : line.substr(begin)];
    }
  }
  return models;
}

}  // namespace

Finding FindGpus(const std::string& root) {
  const int64_t gpus = std::ssize(GpuDevices(root));
  Finding finding{.name = "GPU"};
  if (gpus == 0) {
    finding.state = Finding::State::kMissing;
    finding.here = "none";
    finding.advice = "nothing: the trainer runs on CPUs; jobs that need a GPU need its driver";
    return finding;
  }
  std::string models;
  for (const auto& [model, count] : Models(root))
    models += fmt::format("{}{} x {}", models.empty() ? "" : ", ", count, model);
  finding.here = models.empty() ? fmt::format("{}", gpus) : models;
  finding.advice = "for jobs submitted with --gpus, and for training with device: cuda";
  return finding;
}

Finding FindGpuTraining() {
  Finding finding{.name = "training on GPUs"};
  try {
    const DeviceFacts device = FactsOfDevice(0);
    finding.here =
        fmt::format("{}, {}, {} GiB; driver for CUDA {}, cuBLASLt {}", device.name,
                    device.gpu_class, device.total_bytes >> 30, device.driver, device.products);
  } catch (const Error& error) {
    finding.state = Finding::State::kMissing;
    finding.here = "not usable";
    finding.advice = error.what();
  }
  return finding;
}

}  // namespace renzan
