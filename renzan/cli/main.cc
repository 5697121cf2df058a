#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cli/verbs.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Renzan trains recommendation models that have outgrown one machine, and shares machines.",
      "renzan"};
  app.require_subcommand(1);
  app.set_version_flag("--version", RENZAN_VERSION);
  app.footer(
      "Exit codes: 0 done, 1 a comparison differs, 64 usage, 65 bad data, 66 no input, 69 a\n"
      "worker died or no daemon, 70 diverged, 71 out of memory, 73 cannot create, 74 I/O (full "
      "disk),\n"
      "75 stopped on request, 77 not allowed, 78 bad configuration.");
  int exit_status = 0;
  renzan::AddTrainVerb(app, exit_status);
  renzan::AddEvalVerb(app, exit_status);
  renzan::AddPredictVerb(app, exit_status);
  renzan::AddDataVerb(app);
  renzan::AddCheckpointVerb(app, exit_status);
  renzan::AddSubmitVerb(app, exit_status);
  renzan::AddJobsVerb(app);
  renzan::AddJobVerb(app);
  renzan::AddNodesVerb(app);
  renzan::AddClusterVerb(app);
  renzan::AddSimulateVerb(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version leave through here too, with status 0.
    return app.exit(error) == 0 ? 0 : static_cast<int>(renzan::ErrorCode::kUsage);
  } catch (const renzan::Error& error) {
    renzan::LogError("{}", error.what());
    return error.exit_status();
  } catch (const nlohmann::json::exception& error) {
    // Files are read with messages of their own; what is left are a daemon's answers.
    renzan::LogError("an answer that cannot be understood ({}): is the daemon of another version?",
                     error.what());
    return static_cast<int>(renzan::ErrorCode::kUnavailable);
  } catch (const std::bad_alloc&) {
    renzan::LogError("out of memory: use more workers, smaller tables or a smaller batch");
    return static_cast<int>(renzan::ErrorCode::kOsError);
  } catch (const std::exception& error) {
    renzan::LogError("unexpected: {}", error.what());
    return static_cast<int>(renzan::ErrorCode::kSoftware);
  }
  return exit_status;
}
