#include "renzan/cluster/kubernetes/process/prometheus_text.h"

#include <fmt/format.h>

#include <cmath>

namespace renzan::cluster::kubernetes {
namespace {

std::string ValueText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string EscapedLabel(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      (text += '\\') += c;
    else
      text += c;
  }
  return text;
}

}  // namespace

void PrometheusText::Family(const char* name, const char* type, const char* help) {
  family_ = name;
  text_ += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

void PrometheusText::Sample(const Labels& labels, const Histogram& histogram) {
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  int64_t so_far = 0;
  for (size_t at = 0; at < histogram.counts().size(); ++at) {
    so_far += histogram.counts()[at];
    with_bound.back().second =
        at < histogram.bounds().size() ? ValueText(histogram.bounds()[at]) : "+Inf";
    Put("_bucket", with_bound, static_cast<double>(so_far));
  }
  Put("_sum", labels, histogram.sum());
  Put("_count", labels, static_cast<double>(so_far));
}

void PrometheusText::Put(const char* suffix, const Labels& labels, double value) {
  text_ += family_;
  text_ += suffix;
  const char* separator = "{";
  for (const auto& [name, of] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", separator, name, EscapedLabel(of));
    separator = ",";
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", ValueText(value));
}

}  // namespace renzan::cluster::kubernetes
