#include "renzan/cli/train/rerun.h"

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/nn/isa.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/run/initialize.h"
#include "renzan/saving/model_directory.h"

namespace renzan {
namespace {

RunManifest ReadFinished(const std::string& run_dir) {
  CheckIsRun(run_dir);
  RunManifest manifest = ReadRunManifest(run_dir + "/manifest.json");
  if (manifest.model_sha256.empty())
    Fail(ErrorCode::kData,
         "{} did not finish, so there is no model to compare with: finish it with `renzan train "
         "--resume --run-dir {}`",
         run_dir, run_dir);
  return manifest;
}

}  // namespace

void ReadRecordedConfig(const std::string& run_dir, std::span<const std::string> overrides,
                        const ConfigFields::Describer& describe) {
  ReadConfigText(ReadFinished(run_dir).config, run_dir + "/manifest.json", overrides, describe);
}

void CheckSameData(const std::string& run_dir, const TrainConfig& config) {
  const RunManifest manifest = ReadFinished(run_dir);
  if (const std::string& source = config.training.initialize_from; !source.empty()) {
    const std::string dir = FindModel(source).dir;
    if (IdentityOf(CheckpointManifest::Read(dir)) != manifest.initialized_from)
      Fail(ErrorCode::kData,
           "{} has changed since {} started from it: restore it, or start a new run", source,
           run_dir);
  }
  for (const std::string& path : {config.data.train.path, config.data.eval.path}) {
    if (path.empty()) continue;
    const Dataset dataset(path);
    const std::string recorded = RecordedFingerprint(manifest, dataset.directory());
    if (!recorded.empty() && recorded != dataset.fingerprint())
      Fail(
          ErrorCode::kData,
          "{} has changed since {} was trained (fingerprint {} then, {} now): import it again from "
          "the same source, or start a new run",
          path, run_dir, recorded.substr(0, 12), dataset.fingerprint().substr(0, 12));
  }
}

int CompareWithRecorded(const std::string& run_dir, const RunResult& result) {
  const RunManifest recorded = ReadFinished(run_dir);
  if (recorded.model_sha256 == result.model_sha256) {
    fmt::print("identical: the model is bit for bit that of {}\nsha256 {}\n", run_dir,
               result.model_sha256);
    return 0;
  }
  fmt::print("DIFFERENT from {}\n  then {}\n  now  {}\n", run_dir, recorded.model_sha256,
             result.model_sha256);
  RunManifest now = ReadRunManifest(result.run_dir + "/manifest.json");
  TrainConfig config;
  ReadConfigText(recorded.config, run_dir + "/manifest.json", {},
                 [&](ConfigFields& fields) { config.Describe(fields); });
  if (HasSameBits(recorded.isa, now.isa, PrecisionOf(config.numerics))) now.isa = recorded.isa;
  for (const std::string& reason : DifferencesThatChangeBits(recorded, now))
    fmt::print("  {}\n", reason);
  fmt::print("to see where: renzan checkpoint diff {}/model {}/model\n", run_dir, result.run_dir);
  return 1;
}

}  // namespace renzan
