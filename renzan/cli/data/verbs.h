#pragma once

// The sub-verbs of `renzan data`, and their shared helpers.

#include <string>

#include "renzan/base/clock.h"
#include "renzan/base/live_line.h"

namespace CLI {
class App;
}

namespace renzan {

void AddDataImportVerb(CLI::App& data);
void AddDataSchemaVerb(CLI::App& data);
void AddDataSynthVerb(CLI::App& data);
void AddDataInspectVerb(CLI::App& data);
void AddDataVerifyVerb(CLI::App& data);

// Progress on stderr: a bar on a terminal, otherwise an occasional plain line.
class DataProgress {
 public:
  DataProgress(const Clock& clock, std::string what);
  ~DataProgress();

  // `fraction` is negative if the total is unknown. May be called often: most calls print nothing.
  void Update(double fraction, const std::string& text);
  double seconds() const { return clock_.MonotonicSeconds() - start_; }

 private:
  const Clock& clock_;
  std::string what_;
  double start_;
  LiveLine line_;
};

}  // namespace renzan
