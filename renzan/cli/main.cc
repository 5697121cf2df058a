#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/bus_error.h"
#include "renzan/base/log.h"
#include "renzan/cli/help/unknown_word.h"
#include "renzan/cli/help/verbs.h"
#include "renzan/cli/machine/verbs.h"
#include "renzan/cli/storage/verbs.h"
#include "renzan/cli/verbs.h"
#include "renzan/cli/version.h"
#include "renzan/storage/s3/s3_storage.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

// Verbs added by `add` are shown under `group`.
template <typename Add>
void Group(CLI::App& app, const char* group, const Add& add) {
  const auto verbs = [&] { return app.get_subcommands([](CLI::App*) { return true; }); };
  const size_t before = verbs().size();
  add();
  const std::vector<CLI::App*> all = verbs();
  for (size_t i = before; i < all.size(); ++i) all[i]->group(group);
}

void AddVerbs(CLI::App& app, int& exit_status) {
  Group(app, "Training", [&] {
    AddTrainVerb(app, exit_status);
    AddRunVerb(app, exit_status);
    AddEvalVerb(app, exit_status);
    AddPredictVerb(app, exit_status);
    AddCheckpointVerb(app, exit_status);
    AddBenchVerb(app, exit_status);
    AddPlanVerb(app, exit_status);
  });
  Group(app, "Data", [&] {
    AddDataVerb(app);
    AddUploadVerb(app);
  });
  Group(app, "Jobs", [&] {
    AddSubmitVerb(app, exit_status);
    AddJobsVerb(app);
    AddJobVerb(app);
    AddPodRunVerb(app, exit_status);
  });
  Group(app, "Clusters", [&] {
    AddClusterVerb(app, exit_status);
    AddNodesVerb(app);
    AddSimulateVerb(app);
  });
  Group(app, "This machine and this program", [&] {
    AddDoctorVerb(app);
    AddHelpVerb(app);
    AddCompletionVerb(app);
  });
}

// Reports a command line that cannot be parsed. --help and --version also arrive here.
int ReportParseError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = ChosenVerb(app);
  const bool asks_for_help = error.get_exit_code() == 0;
  // If a verb is missing or misspelt, --help may belong to the unknown one.
  if (const std::string unknown = DescribeUnknownWord(app);
      !unknown.empty() && (!asks_for_help || verb.get_require_subcommand_min() > 0)) {
    LogError("{}", unknown);
  } else if (asks_for_help) {
    return app.exit(error);
  } else if (verb.get_require_subcommand_min() > 0 && verb.get_subcommands().empty()) {
    fmt::print(stderr, "{}", app.help());
  } else {
    app.exit(error);
  }
  return static_cast<int>(ErrorCode::kUsage);
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) {
  renzan::ExitOnBusErrors();
  renzan::SetObjectStore([] {
    std::signal(SIGPIPE, SIG_IGN);  // a connection that breaks is an Error
    return renzan::s3::OpenS3(renzan::s3::ProcessEnvironment(), renzan::SystemClock(), {});
  });
  CLI::App app{
      "Renzan trains recommendation models that have outgrown one machine, and schedules jobs on "
      "shared machines.",
      "renzan"};
  app.require_subcommand(1);
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.set_version_flag("--version", renzan::VersionText,
                       "Print the version, the instruction set and the libraries");
  app.footer(
      "`renzan help VERB` or `renzan VERB --help` shows the help of one verb.\n"
      "Exit codes: 0 done, 1 a comparison differs, 64 usage, 65 bad data, 66 no input, 69 a\n"
      "worker died or no daemon, 70 diverged, 71 out of memory, 73 cannot create, 74 I/O (full "
      "disk),\n"
      "75 stopped on request, 77 not allowed, 78 bad configuration.");
  int exit_status = 0;
  renzan::AddVerbs(app, exit_status);
  if (argc == 1) {
    fmt::print("{}", app.help());
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return renzan::ReportParseError(app, error);
  } catch (const renzan::Error& error) {
    renzan::LogError("{}", error.what());
    return error.exit_status();
  } catch (const nlohmann::json::exception& error) {
    // Errors in files have their own messages, so this one is about an answer of a daemon.
    renzan::LogError("cannot parse the answer of the daemon ({}): does it run another version?",
                     error.what());
    return static_cast<int>(renzan::ErrorCode::kUnavailable);
  } catch (const std::bad_alloc&) {
    renzan::LogError("out of memory: use more workers, smaller tables or a smaller batch");
    return static_cast<int>(renzan::ErrorCode::kOsError);
  } catch (const std::exception& error) {
    renzan::LogError("unexpected error: {}", error.what());
    return static_cast<int>(renzan::ErrorCode::kSoftware);
  }
  return exit_status;
}
