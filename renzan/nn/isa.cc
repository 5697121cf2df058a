#include "renzan/nn/isa.h"

#include <gnu/libc-version.h>
#include <hwy/targets.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "renzan/base/error.h"

namespace renzan {
namespace {

struct IsaClass {
  const char* name;
  int64_t highway_targets;  // the best one that the machine has is used
  BFloat16Products products = BFloat16Products::kWidened;
};

// In the order in which "auto" prefers them.
#if HWY_ARCH_X86
constexpr IsaClass kClasses[] = {
    {"amx", HWY_AVX3 | HWY_AVX2, BFloat16Products::kTiles},
    {"avx512_bf16", HWY_AVX3, BFloat16Products::kPairs},
    {"avx512", HWY_AVX3},
    {"avx2", HWY_AVX2},
    {"sse4", HWY_SSE4},
};
constexpr const char* kLeastInstructions = "SSE4.2, PCLMULQDQ and AES";
#else
constexpr const char* kLeastInstructions = "NEON";
constexpr IsaClass kClasses[] = {{"neon", HWY_NEON}};
#endif

BFloat16Products selected_products = BFloat16Products::kWidened;
bool emulate_tile_registers = false;

#if HWY_ARCH_X86_64

// The kernel lets a process use AMX's large state only on request.
bool RequestTileRegisters() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // <asm/prctl.h>, XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-bf16") != 0 &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool IsSupported(const IsaClass& isa) {
  if ((hwy::SupportedTargets() & isa.highway_targets) == 0) return false;
  return isa.products != BFloat16Products::kPairs || __builtin_cpu_supports("avx512bf16") != 0;
}

// Intel's processors have half as many units for pairs of bfloat16 as for float32, so pairs make
// them no faster; AMD's are twice as fast with them.
bool IsFast(const IsaClass& isa, Precision precision) {
  switch (isa.products) {
    case BFloat16Products::kWidened:
      return true;
    case BFloat16Products::kPairs:
      return precision == Precision::kBFloat16 && __builtin_cpu_is("amd") != 0;
    case BFloat16Products::kTiles:
      return precision == Precision::kBFloat16 && HasTileRegisters();
  }
  return false;
}

#else

bool RequestTileRegisters() { return false; }
bool IsSupported(const IsaClass& isa) {
  return (hwy::SupportedTargets() & isa.highway_targets) != 0;
}
bool IsFast(const IsaClass&, Precision) { return true; }

#endif

}  // namespace

void CheckProcessor(int64_t highway_targets) {
  const bool has_any = std::any_of(
      std::begin(kClasses), std::end(kClasses),
      [&](const IsaClass& isa) { return (isa.highway_targets & highway_targets) != 0; });
  if (has_any) return;
  Fail(ErrorCode::kConfig,
       "this processor lacks instructions that Renzan's kernels need ({}): use a newer machine",
       kLeastInstructions);
}

std::string SelectIsa(const std::string& name, Precision precision) {
  hwy::DisableTargets(0);  // undoes an earlier call
  CheckProcessor(hwy::SupportedTargets());
  std::string available;
  for (const IsaClass& isa : kClasses) {
    const bool supported = IsSupported(isa);
    if (supported) available += std::string(available.empty() ? "" : ", ") + isa.name;
    if (name != "auto" && name != isa.name) continue;
    if (name == "auto" && !(supported && IsFast(isa, precision))) continue;
    if (!supported)
      Fail(ErrorCode::kConfig, "numerics.isa: this machine does not support {}: use auto or {}",
           name, available);
    // A better target has a lower bit: disabling all bits below the chosen one pins it.
    const int64_t targets = hwy::SupportedTargets() & isa.highway_targets;
    hwy::DisableTargets((targets & -targets) - 1);
    hwy::GetChosenTarget().DeInit();
    selected_products = isa.products;
    return isa.name;
  }
  Fail(ErrorCode::kConfig, "numerics.isa: unknown class '{}' (this machine has auto, {})", name,
       available);
}

BFloat16Products BFloat16ProductsOfIsa() { return selected_products; }

bool HasTileRegisters() {
  static const bool granted = RequestTileRegisters();
  return granted && !emulate_tile_registers;
}

void EmulateTileRegisters(bool always) { emulate_tile_registers = always; }

bool HasSameBits(const std::string& isa, const std::string& other, Precision precision) {
  // On Arm the C library's functions may round differently.
  const auto kind = [&](const std::string& name) -> std::string {
    if (name == "amx" && precision == Precision::kBFloat16) return "amx";
    if (name == "avx2" || name == "amx" || name.starts_with("avx512")) return "fused on x86";
    return name;
  };
  return kind(isa) == kind(other);
}

bool IsGpuClass(const std::string& isa) { return isa.starts_with("sm_"); }

std::string MathLibraryVersion() { return fmt::format("glibc {}", gnu_get_libc_version()); }

}  // namespace renzan
