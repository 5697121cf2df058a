#include "renzan/nn/isa.h"

#include <gnu/libc-version.h>
#include <hwy/targets.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

struct IsaClass {
  const char* name;
  int64_t highway_target;
  bool bfloat16_pairs = false;
};

#if HWY_ARCH_X86
// In the order in which "auto" prefers them.
constexpr IsaClass kClasses[] = {
    {"avx512_bf16", HWY_AVX3, true},
    {"avx512", HWY_AVX3},
    {"avx2", HWY_AVX2},
    {"sse4", HWY_SSE4},
};
#else
constexpr IsaClass kClasses[] = {{"neon", HWY_NEON}};
#endif

bool bfloat16_pairs = false;

bool IsSupported(const IsaClass& isa) {
  if ((hwy::SupportedTargets() & isa.highway_target) == 0) return false;
#if HWY_ARCH_X86
  if (isa.bfloat16_pairs) return __builtin_cpu_supports("avx512bf16") != 0;
#endif
  return true;
}

// Intel's processors have half as many units for pairs of bfloat16 as for float32, so they multiply
// no faster with them; AMD's are twice as fast.
bool IsFast(const IsaClass& isa) {
#if HWY_ARCH_X86
  if (isa.bfloat16_pairs) return __builtin_cpu_is("amd") != 0;
#endif
  return true;
}

}  // namespace

std::string SelectIsa(const std::string& name) {
  hwy::DisableTargets(0);  // undoes an earlier call
  std::string available;
  for (const IsaClass& isa : kClasses) {
    const bool supported = IsSupported(isa);
    if (supported) available += std::string(available.empty() ? "" : ", ") + isa.name;
    if (name != "auto" && name != isa.name) continue;
    if (!supported) {
      if (name == "auto") continue;
      Fail(ErrorCode::kConfig, "numerics.isa: this machine does not support {}: use auto or {}",
           name, available);
    }
    if (name == "auto" && !IsFast(isa)) continue;
    // A better target has a lower bit: disabling all those below the chosen one pins it.
    hwy::DisableTargets(isa.highway_target - 1);
    hwy::GetChosenTarget().DeInit();
    bfloat16_pairs = isa.bfloat16_pairs;
    return isa.name;
  }
  Fail(ErrorCode::kConfig, "numerics.isa: unknown class '{}' (this machine has auto, {})", name,
       available);
}

bool HasBFloat16Pairs() { return bfloat16_pairs; }

bool HasSameBits(const std::string& isa, const std::string& other) {
  // On Arm the C library's functions may round differently.
  const auto fuses_on_x86 = [](const std::string& name) {
    return name == "avx2" || name.starts_with("avx512");
  };
  return isa == other || (fuses_on_x86(isa) && fuses_on_x86(other));
}

std::string MathLibraryVersion() { return fmt::format("glibc {}", gnu_get_libc_version()); }

}  // namespace renzan
