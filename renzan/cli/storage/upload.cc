// renzan upload SOURCE... s3://BUCKET/PREFIX

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/cli/storage/verbs.h"
#include "renzan/storage/storage.h"
#include "renzan/storage/upload_files.h"

namespace renzan {
namespace {

struct UploadFlags {
  std::vector<std::string> words;  // sources, and the target
  std::string files_from;
};

std::vector<std::string> Lines(std::istream& in) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::vector<std::string> SourcesIn(const std::string& path) {
  if (path == "-") return Lines(std::cin);
  std::ifstream in(path);
  if (!in) Fail(ErrorCode::kNoInput, "cannot read {}, the list of files", path);
  return Lines(in);
}

void Upload(const UploadFlags& flags) {
  std::vector<std::string> sources = flags.words;
  const std::string to = sources.back();
  sources.pop_back();
  if (!IsInStore(to))
    Fail(ErrorCode::kUsage, "{}: the last word must be a place in a store: s3://BUCKET/PREFIX", to);
  if (!flags.files_from.empty()) {
    for (std::string& source : SourcesIn(flags.files_from)) sources.push_back(std::move(source));
  } else if (sources.empty()) {
    Fail(ErrorCode::kUsage, "nothing to upload: name files or directories before {}", to);
  }
  std::vector<UploadSource> named;
  for (const std::string& source : sources) named.push_back(UploadSourceOf(source));
  const Uploaded done = UploadFiles(named, to, StopOnSignals());
  LogInfo("uploaded {} ({:.1f} MB) to {}{}", Counted(done.files, "file"),
          static_cast<double>(done.bytes) / 1e6, to,
          done.left_out == 0 ? "" : fmt::format("; left out {} that are not files", done.left_out));
}

}  // namespace

void AddUploadVerb(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("upload", "Copy files and directories to an S3-compatible object store");
  const auto flags = std::make_shared<UploadFlags>();
  verb->add_option("source", flags->words, "Files and directories, then s3://BUCKET/PREFIX")
      ->required()
      ->type_name("PATH");
  verb->add_option("--files-from", flags->files_from,
                   "Read sources from this file, one a line; -: from stdin")
      ->type_name("FILE");
  verb->footer(
      "A source is stored below PREFIX under what follows /./ in its path, or else under the last\n"
      "part of its path. Existing objects of these names are replaced; links are left out. The "
      "store\n"
      "is configured by the environment: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and so on.\n"
      "Examples:\n"
      "  renzan upload run s3://models/kaggle          # to kaggle/run/...\n"
      "  renzan upload ./jobs/7/./run/model s3://models/kaggle   # to kaggle/run/model/...");
  verb->callback([flags] { Upload(*flags); });
}

}  // namespace renzan
