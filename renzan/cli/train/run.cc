// renzan run --workers N -- COMMAND [ARGS...]

#include "renzan/run/run.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/base/process/child.h"
#include "renzan/base/process/start_failure.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/command_line.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cli/verbs.h"
#include "renzan/cli/working_directory.h"
#include "renzan/comm/rendezvous.h"
#include "renzan/launch/elastic.h"

namespace renzan {
namespace {

struct RunFlags {
  std::vector<std::string> words;  // the command, as CLI11 has changed it (see WordsAfterDashes)
  int workers = 0, min_workers = 0, max_restarts = 3;
  std::string backend = "gloo", grow_after = "0", run_dir, checkpoint_dir;
};

struct Directories {
  std::string run, checkpoints;
};

// Workers of this machine cannot be a part of a larger world.
void CheckNotAWorker() {
  // Where worker 0 is does not matter.
  const std::optional<Rendezvous> rendezvous =
      RendezvousFromEnvironment([](const std::string& name) -> const char* {
        return name == "MASTER_ADDR" ? "localhost" : std::getenv(name.c_str());
      });
  if (!rendezvous || (rendezvous->world_size == 1 && !rendezvous->under_mpirun)) return;
  Fail(ErrorCode::kUsage,
       "this is itself worker {} of {}, by its environment: start the command without renzan run, "
       "as every one of these workers (`renzan submit --replicas N -- COMMAND` for a job)",
       rendezvous->rank, rendezvous->world_size);
}

// The command's script or program, without directory and extension.
std::string ScriptName(const std::vector<std::string>& command) {
  for (const std::string& word : command)
    if (const std::filesystem::path path = word; path.extension() == ".py") return path.stem();
  return std::filesystem::path(command[0]).filename();
}

// The flag's, else the environment's, else `otherwise`; created, and absolute.
std::string Directory(const std::string& flag, const char* variable, const std::string& otherwise) {
  const char* inherited = std::getenv(variable);
  std::string path = flag;
  if (path.empty() && inherited != nullptr) path = inherited;
  if (path.empty()) path = otherwise;
  CreateDirectories(path);
  return AbsolutePath(path);
}

Directories MakeDirectories(const RunFlags& flags, const std::vector<std::string>& command) {
  Directories directories;
  directories.run = Directory(flags.run_dir, "RENZAN_RUN_DIR",
                              NewRunDirectory(ScriptName(command), SystemClock()));
  directories.checkpoints =
      Directory(flags.checkpoint_dir, "RENZAN_CHECKPOINT_DIR", directories.run + "/checkpoints");
  return directories;
}

std::string DescribeEnds(const RunFlags& flags, const LaunchResult& last) {
  std::vector<std::string> ends;
  for (const ProcessEnd& end : last.ends)
    ends.push_back(end.signal != 0 ? fmt::format("signal {}", end.signal)
                                   : std::to_string(end.exit_code));
  if (ends.empty()) return "no worker was running";
  return fmt::format("{} ended with {}", flags.backend == "mpi" ? "mpirun" : "workers",
                     fmt::join(ends, ", "));
}

int RunCommand(const RunFlags& flags) {
  SetLogPrefix("renzan run: ");
  const std::vector<std::string> command = WordsAfterDashes();
  if (command.empty())
    Fail(ErrorCode::kUsage, "no command: it goes after --, as in renzan run --workers {} -- {}",
         flags.workers,
         flags.words.empty() ? "python3 train.py" : fmt::format("{}", fmt::join(flags.words, " ")));
  if (flags.min_workers > flags.workers)
    Fail(ErrorCode::kUsage, "--min {} is more than --workers {}", flags.min_workers, flags.workers);
  CheckNotAWorker();
  const ChildOptions child = {.argv = command, .environment = OwnEnvironment()};
  if (const int error = FindProgram(command[0], child.environment); error != 0) {
    const StartFailure failure =
        ExplainStartError({.error = error}, child, std::to_string(geteuid()));
    LogError("{}", failure.message);
    return failure.exit_code;
  }
  const Directories directories = MakeDirectories(flags, command);
  LogInfo("{} ({}): {}; run directory {}, checkpoints {}", Counted(flags.workers, "worker"),
          flags.backend, Escape(fmt::format("{}", fmt::join(command, " "))), directories.run,
          directories.checkpoints);
  const auto start = std::chrono::steady_clock::now();
  const ElasticResult result =
      LaunchElastic({.workers = flags.workers,
                     .backend = flags.backend,
                     .argv = command,
                     .program = command[0],
                     .kind = WorkerProgram::kAny,
                     .environment = {"RENZAN_RUN_DIR=" + directories.run,
                                     "RENZAN_CHECKPOINT_DIR=" + directories.checkpoints}},
                    {.min_workers = flags.min_workers,
                     .max_restarts = flags.max_restarts,
                     .max_restarts_name = "--max-restarts",
                     .grow_after_seconds = *ParseDuration(flags.grow_after),
                     .sharded = false});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  LogInfo("exit status {} after {} and {}: {}", result.last.exit_status,
          FormatDuration(static_cast<int64_t>(seconds.count())),
          Counted(result.restarts, "restart"), DescribeEnds(flags, result.last));
  return result.last.exit_status;
}

}  // namespace

void AddRunVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand(
      "run", "Start and supervise workers of any program, such as a PyTorch script");
  const auto flags = std::make_shared<RunFlags>();
  verb->add_option("command", flags->words, "The command and its arguments, after --");
  verb->add_option("--workers,--max", flags->workers,
                   "Start this many workers on this machine; there are never more")
      ->required()
      ->check(AtLeast(1));
  verb->add_option("--min", flags->min_workers,
                   "Restart without workers that died, but never with fewer than this; default: "
                   "always with --workers")
      ->check(AtLeast(1));
  verb->add_option("--max-restarts", flags->max_restarts, "Restart this often, in total")
      ->check(AtLeast(0))
      ->capture_default_str();
  verb->add_option("--grow-after", flags->grow_after,
                   "Once fewer than --workers have run for this long (10m), stop them and "
                   "start --workers again. The command has to save on SIGTERM and end with 75; 0: "
                   "never")
      ->check([](const std::string& text) {
        return ParseDuration(text) ? "" : "must be a duration such as 90s, 10m or 1h, or 0";
      })
      ->capture_default_str();
  verb->add_option("--backend", flags->backend, "gloo or mpi (under mpirun)")
      ->check(OneOf({"gloo", "mpi"}))
      ->capture_default_str();
  verb->add_option("--run-dir", flags->run_dir,
                   "Directory for what workers write; default: $RENZAN_RUN_DIR, else "
                   "runs/SCRIPT-TIME");
  verb->add_option("--checkpoint-dir", flags->checkpoint_dir,
                   "Directory for checkpoints; default: $RENZAN_CHECKPOINT_DIR, else checkpoints "
                   "in the run directory");
  verb->footer(
      "Workers get torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,\n"
      "MASTER_ADDR, MASTER_PORT), RENZAN_RUN_DIR, RENZAN_CHECKPOINT_DIR and RENZAN_RESTART (0, 1,\n"
      "...). OMP_NUM_THREADS stays as it is, because the number of threads may change results: "
      "let\n"
      "the program choose one that does not depend on the number of workers.\n"
      "SIGTERM, SIGINT and SIGHUP (as SIGTERM) are passed on to every worker, SIGUSR1 to those "
      "that\n"
      "handle it, none to their children. After a failure all are restarted, unless it would "
      "recur:\n"
      "exit status 2 (wrong command line), 126, 127, and 64 to 78 except 69, 71 and 74.\n"
      "The exit status is 0 when all workers have ended with 0, 75 when they were stopped, 130 by\n"
      "Ctrl-C, else that of the worker that failed: 69 if a signal killed it; 126 or 127 if the\n"
      "command cannot be started.\n"
      "Examples:\n"
      "  renzan run --workers 2 -- python3 train.py --epochs 3\n"
      "  renzan run --workers 4 --min 2 --run-dir runs/digits -- python3 train.py");
  verb->callback([flags, &exit_status] { exit_status = RunCommand(*flags); });
}

}  // namespace renzan
