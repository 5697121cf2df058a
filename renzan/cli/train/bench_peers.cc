#include "renzan/cli/train/bench_peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "renzan/base/counted.h"
#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/free_port.h"
#include "renzan/base/process/pipe.h"
#include "renzan/base/process/process_end.h"
#include "renzan/base/this_program.h"
#include "renzan/cli/text/table.h"

namespace renzan {
namespace {

struct Transport {
  std::string name, backend;
  std::vector<std::string> mca;  // of mpirun: name, value
  std::string advice;            // how a run gets it, instead of what mpirun chooses
};

struct Measured {
  std::map<std::string, double> seconds;  // by bytes to each peer
  std::string problem;                    // if it could not be measured
};

constexpr std::array<std::pair<const char*, const char*>, 3> kSizes = {
    std::pair{"64", "64 B"}, {"262144", "256 KiB"}, {"4194304", "4 MiB"}};
constexpr const char* kSizeThatDecides = "262144";
constexpr const char* kChosen = "MPI, as mpirun chooses";

std::vector<Transport> Transports(bool one_host) {
  std::vector<Transport> transports = {{"Gloo, TCP", "gloo", {}, ""}};
  if (one_host)
    transports.push_back({"MPI, shared memory", "mpi", {"pml", "ob1", "btl", "self,vader"}, ""});
  transports.push_back({"MPI, TCP", "mpi", {"pml", "ob1", "btl", "self,tcp"}, ""});
  transports.push_back({"MPI, UCX", "mpi", {"pml", "ucx"}, "OMPI_MCA_pml=ucx"});
  transports.push_back(
      {"MPI, libfabric", "mpi", {"pml", "cm", "mtl", "ofi"}, "OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi"});
  transports.push_back({kChosen, "mpi", {}, ""});
  return transports;
}

std::vector<std::string> CommandOf(const Transport& transport, const PeersOptions& options) {
  // A transport that finds no way to the other workers may wait forever.
  std::vector<std::string> command = {"timeout", "--kill-after=5", "60"};
  const auto add = [&](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  const std::string workers = std::to_string(options.workers);
  // On one host, Gloo needs no mpirun.
  const bool alone = options.hosts.empty() && transport.backend == "gloo";
  if (!alone) {
    add({"mpirun", "-n", workers, "--bind-to", "none"});
    if (options.hosts.empty()) {
      add({"--oversubscribe"});
    } else {
      const size_t slots = static_cast<size_t>(options.workers) / options.hosts.size();
      std::vector<std::string> hosts;
      for (const std::string& host : options.hosts)
        hosts.push_back(fmt::format("{}:{}", host, slots));
      add({"--host", fmt::format("{}", fmt::join(hosts, ","))});
    }
    for (size_t i = 0; i < transport.mca.size(); i += 2)
      add({"--mca", transport.mca[i], transport.mca[i + 1]});
    if (options.workers >
        UsableCpus(ReadCpuBudget()) * static_cast<int>(std::max<size_t>(1, options.hosts.size())))
      add({"--mca", "mpi_yield_when_idle", "1"});
    if (transport.backend == "gloo")
      add({"-x", "MASTER_ADDR=" + options.hosts[0], "-x",
           fmt::format("MASTER_PORT={}", FreePort())});
  }
  add({ThisProgram(), "bench", "machine", "--exchange", "--json", "--threads", "1", "--backend",
       transport.backend});
  if (alone) add({"--workers", workers});
  return command;
}

// The first line that says something.
std::string FirstLine(const std::string& output) {
  for (size_t begin = 0; begin < output.size();) {
    const size_t end = std::min(output.find('\n', begin), output.size());
    const std::string line = output.substr(begin, end - begin);
    if (line.find_first_not_of("-= ") != std::string::npos) return line;
    begin = end + 1;
  }
  return "";
}

Measured Measure(const Transport& transport, const PeersOptions& options) {
  Pipe output = MakePipe();
  ChildOptions child;
  child.argv = CommandOf(transport, options);
  child.environment = OwnEnvironment();
  if (geteuid() == 0)
    child.environment.insert(child.environment.end(),
                             {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
  child.death_signal = SIGTERM;  // `timeout` passes it on
  child.stdout_fd = child.stderr_fd = output.write_end.get();
  const std::variant<pid_t, StartError> started = StartChild(child);
  output.write_end.Close();
  if (std::holds_alternative<StartError>(started))
    return {.seconds = {}, .problem = "cannot start"};
  const std::string text = ReadToEnd(output.read_end);
  int status = 0;
  while (::waitpid(std::get<pid_t>(started), &status, 0) < 0 && errno == EINTR) {
  }
  // Transports may print warnings before and after.
  const size_t begin = text.find("{\n"), end = text.rfind("\n}");
  if (status == 0 && begin < end && end != std::string::npos) {
    const auto result = nlohmann::json::parse(text.substr(begin, end + 2 - begin), nullptr, false);
    if (!result.is_discarded() && result.contains("all_to_all_seconds"))
      return {.seconds = result["all_to_all_seconds"], .problem = ""};
  }
  constexpr int kTimedOut = 124, kKilled = 137;  // by `timeout`
  const ProcessEnd ended = EndOf(status);
  if (ended.exit_code == kTimedOut || ended.exit_code == kKilled)
    return {.seconds = {}, .problem = "no answer within 60 s"};
  if (status == 0)
    return {
        .seconds = {},
        .problem = "no figures: is this the mpirun of the Open MPI that Renzan was built with?"};
  const std::string line = FirstLine(text);
  return {.seconds = {}, .problem = line.empty() ? DescribeEnd(ended) : line};
}

// What to set if mpirun's choice is not the best.
void PrintAdvice(const std::vector<Transport>& transports, const std::vector<Measured>& measured,
                 bool one_host) {
  fmt::print("\n--backend gloo uses the first; --backend mpi {}.\n",
             one_host ? "shared memory here, and across hosts the last"
                      : "the last, if mpirun starts the workers");
  const auto seconds_of = [&](size_t i) -> std::optional<double> {
    const auto found = measured[i].seconds.find(kSizeThatDecides);
    if (found == measured[i].seconds.end()) return std::nullopt;
    return found->second;
  };
  const std::optional<double> chosen = seconds_of(transports.size() - 1);
  constexpr double kWorthwhile = 1.25;
  std::optional<size_t> best;
  for (size_t i = 0; i < transports.size(); ++i)
    if (!transports[i].advice.empty() && seconds_of(i) &&
        (!best || *seconds_of(i) < *seconds_of(*best)))
      best = i;
  if (!best) return;
  if (!chosen)
    fmt::print("{} works where mpirun's choice does not: set {}.\n", transports[*best].name,
               transports[*best].advice);
  else if (*chosen > kWorthwhile * *seconds_of(*best))
    fmt::print("{} is {:.1f} times as fast as what mpirun chooses: set {}.\n",
               transports[*best].name, *chosen / *seconds_of(*best), transports[*best].advice);
}

}  // namespace

void BenchPeers(const PeersOptions& options) {
  if (!options.hosts.empty() && options.workers % static_cast<int>(options.hosts.size()) != 0)
    Fail(ErrorCode::kUsage, "--workers {} cannot be spread evenly over {}", options.workers,
         Counted(options.hosts.size(), "host"));
  const std::vector<Transport> transports = Transports(options.hosts.empty());
  std::vector<Measured> measured;
  for (const Transport& transport : transports) measured.push_back(Measure(transport, options));

  bool any = false;
  nlohmann::ordered_json json = {{"workers", options.workers}, {"hosts", options.hosts}};
  Table table({{"all-to-all, to each peer"},
               {kSizes[0].second, kRight},
               {kSizes[1].second, kRight},
               {kSizes[2].second, kRight},
               {""}});
  for (size_t i = 0; i < transports.size(); ++i) {
    any |= measured[i].problem.empty();
    auto& entry = json["transports"].emplace_back();
    entry["name"] = transports[i].name;
    std::vector<std::string> cells = {transports[i].name};
    for (const auto& [bytes, name] : kSizes) {
      const auto found = measured[i].seconds.find(bytes);
      cells.push_back(
          found == measured[i].seconds.end() ? "" : fmt::format("{:.1f} µs", found->second * 1e6));
      if (found != measured[i].seconds.end()) entry["seconds"][bytes] = found->second;
    }
    if (!measured[i].problem.empty()) entry["problem"] = measured[i].problem;
    cells.push_back(measured[i].problem);
    table.Add(cells);
  }
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print(
        "{} on {}\n{}", Counted(options.workers, "worker"),
        options.hosts.empty() ? "this host" : fmt::format("{}", fmt::join(options.hosts, ", ")),
        table.Text());
    PrintAdvice(transports, measured, options.hosts.empty());
  }
  if (!any) Fail(ErrorCode::kUnavailable, "no transport could be measured; the table says why");
}

}  // namespace renzan
