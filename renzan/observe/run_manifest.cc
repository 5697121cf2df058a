#include "renzan/observe/run_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/same_path.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "renzan-run";
constexpr int kVersion = 1;

void Compare(const std::string& what, const std::string& recorded, const std::string& now,
             std::vector<std::string>& differences) {
  if (recorded != now)
    differences.push_back(fmt::format("{} was {}, is now {}", what, recorded, now));
}

void Compare(const std::string& what, const std::map<std::string, std::string>& recorded,
             const std::map<std::string, std::string>& now, std::vector<std::string>& differences) {
  std::set<std::string> names;
  for (const auto& [name, value] : recorded) names.insert(name);
  for (const auto& [name, value] : now) names.insert(name);
  const auto value_of = [](const auto& map, const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? std::string("absent") : found->second;
  };
  for (const std::string& name : names)
    Compare(fmt::format("{} {}", what, name), value_of(recorded, name), value_of(now, name),
            differences);
}

// `datasets`, by the paths of `recorded` where they are the same.
std::map<std::string, std::string> SpelledLike(const std::map<std::string, std::string>& recorded,
                                               const std::map<std::string, std::string>& datasets) {
  std::map<std::string, std::string> spelled;
  for (const auto& [path, fingerprint] : datasets) {
    const auto same = std::find_if(recorded.begin(), recorded.end(), [&](const auto& other) {
      return IsSamePath(other.first, path);
    });
    spelled[same == recorded.end() ? path : same->first] = fingerprint;
  }
  return spelled;
}

}  // namespace

void WriteRunManifest(const std::string& path, const RunManifest& manifest) {
  Json out = {{"format", kFormat},
              {"version", kVersion},
              {"build", manifest.build},
              {"seed", manifest.seed},
              {"isa", manifest.isa},
              {"libraries", manifest.libraries},
              {"datasets", manifest.datasets},
              {"hosts", manifest.hosts},
              {"started", manifest.started_unix_seconds},
              {"left_out_rows", manifest.left_out_rows},
              {"steps", manifest.steps},
              {"model_sha256", nullptr},
              {"config", manifest.config}};
  if (!manifest.initialized_from.empty()) out["initialized_from"] = manifest.initialized_from;
  if (!manifest.model_sha256.empty()) out["model_sha256"] = manifest.model_sha256;
  WriteFileAtomically(path, out.dump(2) + "\n");
}

RunManifest ReadRunManifest(const std::string& path) {
  const std::string text = ReadFile(path);
  try {
    const Json in = Json::parse(text);
    if (in.at("format") != kFormat || in.at("version") != kVersion)
      Fail(ErrorCode::kData, "{}: format {} version {} is not {} version {}", path,
           in.at("format").dump(), in.at("version").dump(), kFormat, kVersion);
    RunManifest manifest;
    // Older manifests hold only a version.
    manifest.build = in.value("build", in.value("program_version", ""));
    in.at("config").get_to(manifest.config);
    in.at("seed").get_to(manifest.seed);
    in.at("datasets").get_to(manifest.datasets);
    in.at("isa").get_to(manifest.isa);
    in.at("libraries").get_to(manifest.libraries);
    in.at("hosts").get_to(manifest.hosts);
    manifest.initialized_from = in.value("initialized_from", "");
    in.at("started").get_to(manifest.started_unix_seconds);
    manifest.left_out_rows = in.value("left_out_rows", int64_t{0});
    in.at("steps").get_to(manifest.steps);
    if (!in.at("model_sha256").is_null()) in.at("model_sha256").get_to(manifest.model_sha256);
    return manifest;
  } catch (const Json::exception& error) {
    Fail(ErrorCode::kData, "{} is not the manifest of a run: {}", path, error.what());
  }
}

std::string RecordedFingerprint(const RunManifest& manifest, const std::string& directory) {
  for (const auto& [path, fingerprint] : manifest.datasets)
    if (IsSamePath(path, directory)) return fingerprint;
  return "";
}

std::vector<std::string> DifferencesThatChangeBits(const RunManifest& recorded,
                                                   const RunManifest& now) {
  std::vector<std::string> differences;
  Compare("seed", std::to_string(recorded.seed), std::to_string(now.seed), differences);
  Compare("dataset", recorded.datasets, SpelledLike(recorded.datasets, now.datasets), differences);
  const auto start_of = [](const RunManifest& manifest) {
    return manifest.initialized_from.empty() ? "none" : manifest.initialized_from;
  };
  Compare("the model it started from", start_of(recorded), start_of(now), differences);
  Compare("instruction set", recorded.isa, now.isa, differences);
  Compare("library", recorded.libraries, now.libraries, differences);
  Compare("build", recorded.build, now.build, differences);
  return differences;
}

}  // namespace renzan
