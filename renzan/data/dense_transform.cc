#include "renzan/data/dense_transform.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan {
namespace {

// In the order of DenseTransform::Kind.
constexpr std::string_view kNames[] = {"none", "log", "standardize", "minmax", "buckets"};
constexpr size_t kSampleSize = 100'000;
constexpr uint64_t kSampleKey = 0x6275636b657473;  // arbitrary; fixed, so that samples are, too

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename Number>
bool ReadNumber(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && rest == end && !text.empty();
}

std::optional<std::vector<double>> ParseNumbers(std::span<const std::string_view> texts) {
  std::vector<double> numbers(texts.size());
  for (size_t i = 0; i < texts.size(); ++i)
    if (!ReadNumber(texts[i], &numbers[i]) || std::isnan(numbers[i])) return std::nullopt;
  return numbers;
}

}  // namespace

// `text`: "X", "mean" or "mean:M".
bool DenseTransform::ParseFill(std::string_view text) {
  constexpr std::string_view kMean = "mean";
  fill_is_mean_ = text.starts_with(kMean);
  if (text == kMean) return true;
  if (fill_is_mean_) {
    if (text[kMean.size()] != ':') return false;
    text.remove_prefix(kMean.size() + 1);
  }
  double number = 0;
  if (!ReadNumber(text, &number) || !std::isfinite(static_cast<float>(number))) return false;
  fill_ = number;
  return true;
}

std::optional<DenseTransform> DenseTransform::Parse(std::string_view text) {
  DenseTransform transform;
  if (constexpr std::string_view kFill = "fill:"; text.starts_with(kFill)) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos ||
        !transform.ParseFill(text.substr(kFill.size(), comma - kFill.size())))
      return std::nullopt;
    text.remove_prefix(comma + 1);
  }
  if (text.starts_with("clip:")) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    const std::vector<std::string_view> words = Split(text.substr(0, comma), ':');
    const auto bounds = ParseNumbers(std::span(words).subspan(1));
    if (!bounds || bounds->size() != 2 || !((*bounds)[0] < (*bounds)[1])) return std::nullopt;
    transform.clip_ = *bounds;
    text.remove_prefix(comma + 1);
  }
  const std::vector<std::string_view> words = Split(text, ':');
  const auto name = std::find(std::begin(kNames), std::end(kNames), words[0]);
  if (name == std::end(kNames)) return std::nullopt;
  transform.kind_ = static_cast<Kind>(name - std::begin(kNames));
  std::span<const std::string_view> rest = std::span(words).subspan(1);
  if (transform.kind_ == Kind::kNone || transform.kind_ == Kind::kLog)
    return rest.empty() ? std::optional(transform) : std::nullopt;
  const bool buckets = transform.kind_ == Kind::kBuckets;
  if (buckets) {
    if (rest.empty() || !ReadNumber(rest[0], &transform.num_buckets_) ||
        transform.num_buckets_ < kMinBuckets || transform.num_buckets_ > kMaxBuckets)
      return std::nullopt;
    rest = rest.subspan(1);
  }
  transform.needs_constants_ = rest.empty();
  // All constants are known, or none.
  if (transform.fill_is_mean_ && transform.fill_.has_value() == rest.empty()) return std::nullopt;
  // A column of one value has no bounds.
  if (buckets && rest.size() == 1 && rest[0] == "-") return transform;
  const auto constants = ParseNumbers(rest);
  if (!constants) return std::nullopt;
  transform.constants_ = *constants;
  if (rest.empty()) return transform;
  const std::vector<double>& c = *constants;
  const bool valid =
      buckets ? std::is_sorted(c.begin(), c.end()) && std::ssize(c) < transform.num_buckets_
              : c.size() == 2 && (transform.kind_ == Kind::kMinmax ? c[0] <= c[1] : c[1] >= 0);
  return valid ? std::optional(transform) : std::nullopt;
}

DenseTransform DenseTransform::ParseKnown(std::string_view text) {
  const std::optional<DenseTransform> transform = Parse(text);
  CHECK(transform.has_value());
  return *transform;
}

std::string DenseTransform::kind() const {
  std::string text;
  if (fill_is_mean_) {
    text = "fill:mean,";
  } else if (fill_) {
    text = fmt::format("fill:{},", *fill_);
  }
  if (!clip_.empty()) text += fmt::format("clip:{}:{},", clip_[0], clip_[1]);
  text += kNames[static_cast<size_t>(kind_)];
  if (kind_ == Kind::kBuckets) text += fmt::format(":{}", num_buckets_);
  return text;
}

std::string DenseTransform::text() const {
  std::string text = kind();
  if (needs_constants()) return text;
  if (fill_is_mean_) {
    constexpr std::string_view kMean = "fill:mean";
    text.insert(kMean.size(), fmt::format(":{}", *fill_));
  }
  if (kind_ == Kind::kBuckets && constants_.empty()) return text + ":-";
  for (const double constant : constants_) text += fmt::format(":{}", constant);
  return text;
}

double DenseTransform::Clip(double x) const {
  return clip_.empty() ? x : std::clamp(x, clip_[0], clip_[1]);
}

double DenseTransform::Log(double x) { return std::log(std::max(x, 0.0) + 1.0); }

float DenseTransform::Apply(double x) const {
  CHECK(!needs_constants());
  x = Clip(x);
  if (kind_ == Kind::kLog) {
    x = Log(x);
  } else if (kind_ == Kind::kStandardize) {
    x = constants_[1] == 0 ? 0 : (x - constants_[0]) / constants_[1];
  } else if (kind_ == Kind::kMinmax) {
    const double width = constants_[1] - constants_[0];
    x = width == 0 ? 0 : (x - constants_[0]) / width;
  } else if (kind_ == Kind::kBuckets) {
    const auto above = std::upper_bound(constants_.begin(), constants_.end(), x);
    x = constants_.empty() ? 0
                           : static_cast<double>(above - constants_.begin()) /
                                 static_cast<double>(constants_.size());
  }
  return static_cast<float>(x);
}

void DenseTransform::Apply(std::span<const double> x, std::span<float> transformed) const {
  CHECK(transformed.size() == x.size());
  for (size_t i = 0; i < x.size(); ++i) transformed[i] = Apply(x[i]);
}

void DenseFit::Add(double x) {
  x = transform_.Clip(x);
  if (transform_.kind_ == DenseTransform::Kind::kLog) x = DenseTransform::Log(x);
  low_ = count_ == 0 ? x : std::min(low_, x);
  high_ = count_ == 0 ? x : std::max(high_, x);
  // Welford's algorithm: a plain sum of squares would lose the variance of timestamps.
  ++count_;
  const double deviation = x - mean_;
  mean_ += deviation / static_cast<double>(count_);
  squares_ += deviation * (x - mean_);
  if (transform_.kind_ != DenseTransform::Kind::kBuckets) return;
  if (sample_.size() < kSampleSize) {
    sample_.push_back(x);
    return;
  }
  const Philox::Block random = Philox::Draw(kSampleKey, count_);
  const uint64_t slot = (uint64_t{random[0]} << 32 | random[1]) % count_;
  if (slot < kSampleSize) sample_[slot] = x;
}

DenseTransform DenseFit::Finish() {
  transform_.needs_constants_ = false;
  std::vector<double>& constants = transform_.constants_;
  if (transform_.kind_ == DenseTransform::Kind::kStandardize) {
    const double rows = static_cast<double>(std::max<uint64_t>(count_, 1));
    constants = {mean_, std::sqrt(squares_ / rows)};
  } else if (transform_.kind_ == DenseTransform::Kind::kMinmax) {
    constants = {low_, high_};
  } else if (transform_.kind_ == DenseTransform::Kind::kBuckets) {
    std::sort(sample_.begin(), sample_.end());
    const auto buckets = static_cast<size_t>(transform_.num_buckets_);
    for (size_t i = 1; i < buckets && !sample_.empty(); ++i) {
      const double bound = sample_[i * sample_.size() / buckets];
      if (bound > (constants.empty() ? sample_.front() : constants.back()))
        constants.push_back(bound);
    }
  }
  if (transform_.fill_is_mean_)
    transform_.fill_ = transform_.kind_ == DenseTransform::Kind::kLog ? std::expm1(mean_)
                       : sample_.empty()                              ? mean_
                                                                      : sample_[sample_.size() / 2];
  return transform_;
}

}  // namespace renzan
