#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/bus_error.h"
#include "renzan/base/log.h"
#include "renzan/cli/command_line.h"
#include "renzan/cli/help/help_formatter.h"
#include "renzan/cli/help/unknown_word.h"
#include "renzan/cli/help/verb_help.h"
#include "renzan/cli/help/verbs.h"
#include "renzan/cli/job_system/load.h"
#include "renzan/cli/machine/installation.h"
#include "renzan/cli/machine/verbs.h"
#include "renzan/cli/storage/verbs.h"
#include "renzan/cli/verb_group.h"
#include "renzan/cli/verbs.h"
#include "renzan/cli/version.h"
#include "renzan/cli/whole_numbers.h"

namespace renzan {
namespace {

// The first word, or of `help VERB` the second; "" if there is none.
std::string WordOfVerb(int argc, char** argv) {
  const bool help = argc > 2 && std::string_view(argv[1]) == "help";
  return argc < 2 ? "" : argv[help ? 2 : 1];
}

// Whether the job system must be loaded: for one of its verbs, to list all verbs, or to find the
// nearest one. `doctor` is an exception because it is added only after this check.
bool NeedsJobSystem(const CLI::App& app, const std::string& word) {
  const auto named = [&](const CLI::App* verb) { return verb->check_name(word); };
  return word != "doctor" && app.get_subcommands(named).empty();
}

void AddJobSystem(CLI::App& app, const std::string& word, int& exit_status) {
  try {
    AddJobSystemVerbs(app, exit_status);
  } catch (const Error& error) {
    if (IsJobSystemVerb(word)) throw;
    if (word != "--version") LogWarning("without the verbs of the job system: {}", error.what());
  }
}

void AddVerbs(CLI::App& app, const std::string& word, int& exit_status) {
  AddVerbGroup(app, "Training", [&] {
    AddTrainVerb(app, exit_status);
    AddRunVerb(app, exit_status);
    AddEvalVerb(app, exit_status);
    AddPredictVerb(app, exit_status);
    AddCheckpointVerb(app, exit_status);
    AddBenchVerb(app, exit_status);
    AddPlanVerb(app, exit_status);
  });
  AddVerbGroup(app, "Data", [&] {
    AddDataVerb(app);
    AddUploadVerb(app);
  });
  if (NeedsJobSystem(app, word)) AddJobSystem(app, word, exit_status);
  AddVerbGroup(app, "This machine and this program", [&] {
    AddDoctorVerb(app);
    AddHelpVerb(app);
    AddCompletionVerb(app);
  });
  ReadWholeNumbersAsDecimal(app);
}

// Reports a command line that cannot be parsed. --help and --version also arrive here.
int ReportParseError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = ChosenVerb(app);
  const bool asks_for_help = error.get_exit_code() == 0;
  // If a verb is missing or misspelt, --help may belong to the unknown one.
  if (const std::string unknown = DescribeParseFailure(app, WordsAfterDashes());
      !unknown.empty() && (!asks_for_help || verb.get_require_subcommand_min() > 0)) {
    LogError("{}", unknown);
  } else if (asks_for_help) {
    return app.exit(error);
  } else if (verb.get_require_subcommand_min() > 0 && verb.get_subcommands().empty()) {
    fmt::print(stderr, "{}", app.help());
  } else {
    LogError("{} (`{} --help` shows the arguments)", error.what(), VerbPath(verb));
  }
  return static_cast<int>(ErrorCode::kUsage);
}

// Called before any file is opened.
void PrepareProcess() {
  // If our parent closed stdin, stdout or stderr, the first files that we open would get those
  // descriptors, and messages would be written into them.
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO) ::close(fd);
    if (fd < 0 || fd > STDERR_FILENO) break;
  }
  // A write beyond the file size limit must fail instead of killing the process. Programs that we
  // start get the default action again.
  std::signal(SIGXFSZ, [](int) {});
  ExitOnBusErrors();
}

int RunVerb(CLI::App& app, int argc, char** argv, int& exit_status) {
  try {
    AddVerbs(app, WordOfVerb(argc, argv), exit_status);
    if (argc == 1) {
      fmt::print("{}", app.help());
    } else {
      app.parse(argc, argv);
    }
  } catch (const CLI::ParseError& error) {
    return ReportParseError(app, error);
  } catch (const Error& error) {
    LogError("{}", error.what());
    return error.exit_status();
  } catch (const nlohmann::json::exception& error) {
    // Errors in files have their own messages, so this one is about an answer of a daemon.
    LogError("cannot parse the answer of the daemon ({}): does it run another version?",
             error.what());
    return static_cast<int>(ErrorCode::kUnavailable);
  } catch (const std::bad_alloc&) {
    LogError("out of memory: use more workers, smaller tables or a smaller batch");
    return static_cast<int>(ErrorCode::kOsError);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return exit_status;  // the error that fmt throws for it
    LogError("unexpected error: {}", error.what());
    return static_cast<int>(ErrorCode::kSoftware);
  }
  return exit_status;
}

// Returns the exit status. What a verb prints is its result: without it, the verb has failed.
int Run(CLI::App& app, int argc, char** argv) {
  int exit_status = 0;
  const int status = RunVerb(app, argc, argv, exit_status);
  const int error = std::fflush(stdout) != 0 ? errno : 0;
  if (status > 1 || (error == 0 && std::ferror(stdout) == 0)) return status;
  // A reader that stopped reading, such as head, knows that output is missing.
  if (error != EPIPE)
    LogError("cannot write to standard output{}",
             error != 0 ? fmt::format(": {}", std::strerror(error)) : ": is the disk full?");
  return static_cast<int>(ErrorCode::kIo);
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) {
  renzan::PrepareProcess();
  renzan::UseObjectStores();
  CLI::App app{
      "Renzan trains recommendation models that have outgrown one machine, and schedules jobs on "
      "shared machines.",
      "renzan"};
  app.require_subcommand(1);
  renzan::UseHelpFormatter(app);
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.set_version_flag("--version", renzan::VersionText,
                       "Print the version, the instruction set and the libraries");
  app.footer(
      "`renzan help VERB` or `renzan VERB --help` shows the help of one verb.\n"
      "Exit codes: 0 done, 1 a comparison differs, 64 usage, 65 bad data, 66 no input, 69 a\n"
      "worker died or no daemon, 70 diverged, 71 out of memory, 73 cannot create, 74 I/O (full "
      "disk),\n"
      "75 stopped on request, 77 not allowed, 78 bad configuration.");
  return renzan::Run(app, argc, argv);
}
