#pragma once

// Prometheus's text format, version 0.0.4. Not thread-safe.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/cluster/kubernetes/controller/histogram.h"

namespace renzan::cluster::kubernetes {

class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Begins a family. The samples that follow belong to it; all of a family's samples must.
  void Family(const char* name, const char* type, const char* help);
  void Sample(double value) { Sample({}, value); }
  void Sample(const Labels& labels, double value) { Put("", labels, value); }
  void Sample(const Labels& labels, const Histogram& histogram);

  std::string Take() { return std::exchange(text_, {}); }

 private:
  void Put(const char* suffix, const Labels& labels, double value);

  std::string family_, text_;
};

}  // namespace renzan::cluster::kubernetes
