#pragma once

// A strict parser of Prometheus's text format: accepts what a scraper accepts and follows its
// conventions (promtool check metrics).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace renzan::cluster::kubernetes {

class ParsedMetrics {
 public:
  // Fails the test for each invalid line.
  explicit ParsedMetrics(const std::string& text) {
    EXPECT_TRUE(text.ends_with('\n'));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) Parse(line);
    CheckHistograms();
  }

  // `series` as written, such as renzan_jobs{state="running"}.
  std::optional<double> Of(const std::string& series) const {
    const auto at = samples_.find(series);
    return at == samples_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  void Parse(const std::string& line) {
    static const std::regex help(R"(# HELP (renzan_[a-z_]+) [A-Z].*\.)");
    static const std::regex type(R"(# TYPE (renzan_[a-z_]+) (counter|gauge|histogram))");
    static const std::regex sample(
        R"re((renzan_[a-z_]+)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? (\S+))re");
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      EXPECT_TRUE(seen_.insert(match[1]).second) << "twice: " << line;
      described_ = match[1];
    } else if (std::regex_match(line, match, type)) {
      EXPECT_EQ(match[1], described_) << line;
      family_ = match[1];
      type_ = match[2];
      EXPECT_EQ(type_ == "counter", family_.ends_with("_total")) << line;
    } else if (std::regex_match(line, match, sample)) {
      AddSample(line, match[1], match[2], match[3]);
    } else {
      ADD_FAILURE() << "neither a comment nor a sample: " << line;
    }
  }

  void AddSample(const std::string& line, const std::string& name, const std::string& labels,
                 const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    EXPECT_EQ(*end, '\0') << line;
    EXPECT_TRUE(samples_.emplace(name + labels, value).second) << "twice: " << line;
    if (type_ != "gauge") {
      EXPECT_GE(value, 0) << line;
    }
    if (type_ != "histogram") {
      EXPECT_EQ(name, family_) << line;
      return;
    }
    const std::string suffix = name.substr(std::min(family_.size(), name.size()));
    EXPECT_TRUE(name.starts_with(family_)) << line;
    static const std::regex le(R"re(,?le="([^"]*)")re");
    std::smatch bound;
    const bool has_bound = std::regex_search(labels, bound, le);
    EXPECT_EQ(has_bound, suffix == "_bucket") << line;
    std::string others = has_bound ? std::regex_replace(labels, le, "") : labels;
    if (others == "{}") others = "";
    Series& series = histograms_[family_ + others];
    if (suffix == "_bucket")
      series.buckets.emplace_back(std::strtod(bound[1].str().c_str(), nullptr), value);
    else if (suffix == "_count")
      series.count = value;
    else
      EXPECT_EQ(suffix, "_sum") << line;
  }

  void CheckHistograms() const {
    for (const auto& [name, series] : histograms_) {
      ASSERT_FALSE(series.buckets.empty()) << name;
      EXPECT_TRUE(std::is_sorted(series.buckets.begin(), series.buckets.end())) << name;
      EXPECT_EQ(series.buckets.back().first, HUGE_VAL) << name;
      EXPECT_EQ(series.buckets.back().second, series.count) << name;
      for (size_t at = 1; at < series.buckets.size(); ++at)
        EXPECT_GE(series.buckets[at].second, series.buckets[at - 1].second) << name;
    }
  }

  struct Series {
    std::vector<std::pair<double, double>> buckets;
    double count = -1;
  };

  std::set<std::string> seen_;
  std::string described_, family_, type_;
  std::map<std::string, double> samples_;
  std::map<std::string, Series> histograms_;
};

}  // namespace renzan::cluster::kubernetes
