#include "renzan/comm/rendezvous.h"

#include <charconv>
#include <climits>
#include <cstdint>
#include <string_view>

#include "renzan/base/error.h"

namespace renzan {
namespace {

class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  // An empty variable counts as not set, because in shells they are hard to tell apart.
  std::optional<std::string> Text(const char* name) const {
    const char* value = lookup_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  bool Has(const char* name) const { return Text(name).has_value(); }

  std::optional<int> Integer(const char* name, int min, int max) const {
    const std::optional<std::string> text = Text(name);
    if (!text) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size())
      Fail(ErrorCode::kUsage, "environment variable {} is '{}', not an integer", name, *text);
    if (value < min || value > max)
      Fail(ErrorCode::kUsage, "environment variable {} is {}, not in [{}, {}]", name, value, min,
           max);
    return value;
  }

  int Required(const char* name, const char* present, int min, int max) const {
    const std::optional<int> value = Integer(name, min, max);
    if (!value)
      Fail(ErrorCode::kUsage,
           "environment variable {} is set but {} is not: a worker needs both; unset {} to train "
           "with a single worker",
           present, name, present);
    return *value;
  }

 private:
  const EnvironmentLookup& lookup_;
};

// The variables in which a launcher passes a worker's identity.
struct Names {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};
constexpr Names kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK"};
constexpr Names kSlurm = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"};

std::optional<Rendezvous> Identity(const Environment& environment, const Names& names) {
  if (!environment.Has(names.rank) && !environment.Has(names.world_size)) return std::nullopt;
  Rendezvous result;
  result.world_size = environment.Required(names.world_size, names.rank, 1, INT_MAX);
  result.rank = environment.Required(names.rank, names.world_size, 0, INT_MAX);
  if (result.rank >= result.world_size)
    Fail(ErrorCode::kUsage, "environment variable {} is {}, but {} is {}: ranks begin at 0",
         names.rank, result.rank, names.world_size, result.world_size);
  result.local_rank = environment.Integer(names.local_rank, 0, INT_MAX).value_or(-1);
  return result;
}

// sbatch and salloc also set SLURM_PROCID for the script itself; only srun starts workers, and only
// its steps are numbered from 0 (the others have reserved numbers near 2^32).
bool StartedBySrun(const Environment& environment) {
  const std::optional<std::string> step = environment.Text("SLURM_STEP_ID");
  if (!step || !environment.Has(kSlurm.rank)) return false;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(step->data(), step->data() + step->size(), number);
  return error == std::errc() && number < 0xFFFFFFF0u;
}

void CheckAgreement(const Rendezvous& ours, const Rendezvous& other) {
  if (ours.rank == other.rank && ours.world_size == other.world_size) return;
  Fail(ErrorCode::kUsage,
       "mpirun started this as worker {} of {}, but RANK and WORLD_SIZE say {} of {}: unset RANK "
       "and WORLD_SIZE",
       ours.rank, ours.world_size, other.rank, other.world_size);
}

}  // namespace

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::optional<Rendezvous> RendezvousFromEnvironment(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  const std::optional<Rendezvous> torchrun = Identity(environment, kTorchrun);
  const std::optional<Rendezvous> mpirun = Identity(environment, kOpenMpi);
  std::optional<Rendezvous> result = mpirun ? mpirun : torchrun;
  if (mpirun && torchrun) CheckAgreement(*mpirun, *torchrun);
  if (!result && StartedBySrun(environment)) result = Identity(environment, kSlurm);
  if (!result) return std::nullopt;

  result->under_mpirun = mpirun.has_value();
  result->master_addr = environment.Text("MASTER_ADDR").value_or("");
  result->master_port = environment.Integer("MASTER_PORT", 1, 65535).value_or(result->master_port);
  result->network_interface = environment.Text("GLOO_SOCKET_IFNAME").value_or("");
  const bool one_host = environment.Integer("OMPI_COMM_WORLD_LOCAL_SIZE", 1, INT_MAX) ==
                        std::optional(result->world_size);
  if (result->master_addr.empty() && (one_host || result->world_size == 1))
    result->master_addr = "127.0.0.1";
  if (result->master_addr.empty() && !result->under_mpirun)
    Fail(ErrorCode::kUsage,
         "this is worker {} of {}, but environment variable MASTER_ADDR is not set: set it to the "
         "host of worker 0 (and MASTER_PORT to a free port there)",
         result->rank, result->world_size);
  if (result->local_rank < 0)
    result->local_rank = IsLoopback(result->master_addr) ? result->rank : 0;
  return result;
}

}  // namespace renzan
