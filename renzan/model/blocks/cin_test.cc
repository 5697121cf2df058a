#include "renzan/model/blocks/cin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(CinBlock, ComputesItsDefinition) {
  constexpr size_t kVectors = 3, kDim = 4;
  const std::vector<size_t> layers = {5, 2, 4};
  BlockAlone cin(Cin{.layers = {5, 2, 4}}, {{{"a", kDim}, {"b", kDim}, {"c", kDim}}});
  const std::vector<float> sums = cin.Output();
  ASSERT_EQ(sums.size(), 4u * 11);
  for (size_t sample = 0; sample < 4; ++sample) {
    using Vectors = std::vector<std::vector<double>>;
    Vectors x0;
    for (size_t j = 0; j < kVectors; ++j) {
      const float* const x = cin.inputs[0].data() + (sample * kVectors + j) * kDim;
      x0.emplace_back(x, x + kDim);
    }
    Vectors x = x0;
    size_t column = sample * 11;
    for (size_t k = 0; k < layers.size(); ++k) {
      const auto weight = cin.parameter(fmt::format("{}.weight", k));
      ASSERT_EQ(weight.size(), layers[k] * x.size() * kVectors);
      Vectors next(layers[k], std::vector<double>(kDim));
      size_t w = 0;
      for (std::vector<double>& map : next)
        for (const std::vector<double>& before : x)
          for (const std::vector<double>& vector : x0) {
            for (size_t d = 0; d < kDim; ++d) map[d] += double{weight[w]} * before[d] * vector[d];
            ++w;
          }
      for (const std::vector<double>& map : next)
        EXPECT_NEAR(double{sums[column++]}, map[0] + map[1] + map[2] + map[3], 1e-4);
      x = next;
    }
  }
}

TEST(CinBlock, GradientsAgreeWithFiniteDifferences) {
  const Shape vectors = {{"a", 3}, {"b", 3}, {"c", 3}};
  for (const std::vector<int64_t>& layers : {std::vector<int64_t>{2}, {2, 4}, {18, 3, 2}})
    BlockAlone(Cin{.layers = layers}, {vectors}).ExpectGradients();
  BlockAlone(Cin{.layers = {2, 3}}, {{{"a", 1}}}).ExpectGradients();
}

// A layer whose weights need more room than all pairs of the few samples.
TEST(CinBlock, GivesGradientsOfMoreMapsThanRows) {
  const std::string name = "cin";
  const std::vector<Shape> inputs = {{{"a", 1}, {"b", 1}}};
  ParameterLayout parameters;
  BufferLayout buffers(Precision::kFloat32);
  const std::unique_ptr<Block> cin = Cin{.layers = {50}}.Make(
      {.name = name, .inputs = inputs, .parameters = parameters, .buffers = buffers});
  const auto size = static_cast<size_t>(parameters.size());
  std::vector<float> values = RandomValues(size, 1), gradients(size);
  PackedParameters packed(parameters, values);
  ThreadPool pool(1);
  packed.Pack(pool);
  std::vector<BlockedMatrix> matrices = buffers.Make(2);
  std::vector<AlignedBuffer> rows = buffers.MakeRows();
  const BlockedMatrix x = Blocked(RandomValues(4, 2), 2, 2);
  BlockedMatrix y(2, 50), d_y = Blocked(RandomValues(100, 3), 2, 50), d_x(2, 2);
  const BlockedMatrix* const input = &x;
  BlockedMatrix* const d_input = &d_x;
  const BlockPass pass{packed, matrices, rows};
  std::vector<const float*> before;
  for (const BlockedMatrix& matrix : matrices) before.push_back(matrix.data());
  cin->Forward(pass, {&input, 1}, &y);
  FlatGradients flat(gradients.data());
  cin->Backward(pass, {&input, 1}, y, &d_y, &flat, {&d_input, 1});
  for (size_t i = 0; i < matrices.size(); ++i)
    EXPECT_EQ(matrices[i].data(), before[i]) << i;  // no allocation in a step
  d_y = Blocked(RandomValues(100, 3), 2, 50);
  for (int64_t map = 0; map < 50; ++map)
    for (int64_t pair = 0; pair < 4; ++pair) {
      float gradient = 0;
      for (int64_t i = 0; i < 2; ++i)
        gradient += d_y.at(i, map) * x.at(i, pair / 2) * x.at(i, pair % 2);
      EXPECT_NEAR(gradients[static_cast<size_t>(map * 4 + pair)], gradient, 1e-5);
    }
}

TEST(CinBlock, RejectsVectorsOfSeveralDimensions) {
  try {
    BlockAlone(Cin{}, {{{"a", 3}, {"b", 4}}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), testing::HasSubstr("block block takes vectors of one dimension, but "
                                                 "its input has 2 vectors of 3, 4"));
  }
}

TEST(CinBlock, HasRowsForEachColumnOfTheDimension) {
  const std::string name = "cin";
  const std::vector<Shape> inputs = {{{"a", 3}, {"b", 3}}};
  ParameterLayout parameters;
  BufferLayout buffers(Precision::kFloat32);
  Cin{.layers = {5}}.Make(
      {.name = name, .inputs = inputs, .parameters = parameters, .buffers = buffers});
  EXPECT_EQ(parameters.parameters()[0].rows_per_sample, 3);
  const std::vector<BlockedMatrix> matrices = buffers.Make(7);
  const std::vector<int64_t> columns = buffers.columns();
  for (size_t i = 0; i < matrices.size(); ++i) {
    EXPECT_EQ(matrices[i].rows(), 21);
    EXPECT_EQ(columns[i], 3 * 16);  // a block of each row
  }
}

}  // namespace
}  // namespace renzan
