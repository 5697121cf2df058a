#include "renzan/nn/isa.h"

#include <gnu/libc-version.h>
#include <hwy/targets.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

struct IsaClass {
  const char* name;
  int64_t highway_target;
};

#if HWY_ARCH_X86
constexpr IsaClass kClasses[] = {
    {"avx512", HWY_AVX3},
    {"avx2", HWY_AVX2},
    {"sse4", HWY_SSE4},
};
#else
constexpr IsaClass kClasses[] = {{"neon", HWY_NEON}};
#endif

}  // namespace

std::string SelectIsa(const std::string& name) {
  hwy::DisableTargets(0);  // undoes an earlier call
  std::string available;
  for (const IsaClass& isa : kClasses) {
    const bool supported = (hwy::SupportedTargets() & isa.highway_target) != 0;
    if (supported) available += std::string(available.empty() ? "" : ", ") + isa.name;
    if (name != "auto" && name != isa.name) continue;
    if (!supported) {
      if (name == "auto") continue;
      Fail(ErrorCode::kConfig, "numerics.isa: this machine does not support {}: use auto or {}",
           name, available);
    }
    // A better target has a lower bit: disabling all those below the chosen one pins it.
    hwy::DisableTargets(isa.highway_target - 1);
    hwy::GetChosenTarget().DeInit();
    return isa.name;
  }
  Fail(ErrorCode::kConfig, "numerics.isa: unknown class '{}' (this machine has auto, {})", name,
       available);
}

bool HasSameBits(const std::string& isa, const std::string& other) {
  // On Arm the C library's functions may round differently.
  const auto fuses_on_x86 = [](const std::string& name) {
    return name == "avx2" || name == "avx512";
  };
  return isa == other || (fuses_on_x86(isa) && fuses_on_x86(other));
}

std::string MathLibraryVersion() { return fmt::format("glibc {}", gnu_get_libc_version()); }

}  // namespace renzan
