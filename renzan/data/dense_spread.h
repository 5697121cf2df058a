#pragma once

// Finds dense features whose values a model cannot be trained on as they are: a layer's gradient
// grows with its inputs, so a few large ones make any usual learning rate diverge, and tiny
// differences are never learned.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

class DenseSpread {
 public:
  explicit DenseSpread(size_t num_features) : features_(num_features) {}

  // Adds one row, after the transforms.
  void Add(std::span<const float> dense);

  // For people: which of these features cannot be trained on, why, and the transform that helps; ""
  // if all can. Ignores features that are 0 in every row. The numbers of a vector have one
  // transform and are one column of the input, so they are reported together.
  std::string Advice(std::span<const std::string> names,
                     std::span<const DenseVector> vectors = {}) const;
  // The feature with the largest values, if they are too large: "'age' (about 2e+09: transform:
  // standardize)"; otherwise "".
  std::string TooLarge(std::span<const std::string> names) const;

  // The transform that makes a feature trainable, or that it is learned better after: "none",
  // "standardize" or "log".
  std::string HelpfulTransform(size_t feature) const;

 private:
  struct Feature {
    double min = 0, max = 0;
    double mean = 0, squares = 0;  // of deviations from the mean
  };

  std::string HelpfulTransform(const Feature& feature) const;
  // What is wrong with a feature or vector, or "".
  std::string Problem(const std::string& name, const Feature& feature) const;
  std::string Problem(const DenseVector& vector) const;
  double Deviation(const Feature& feature) const;
  // The root mean square.
  double Magnitude(const Feature& feature) const;
  std::string DescribeTooLarge(const std::string& name, const Feature& feature) const;

  std::vector<Feature> features_;
  uint64_t rows_ = 0;
};

}  // namespace renzan
