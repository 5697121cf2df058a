#include "renzan/cuda/dense_engine.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cuda/interaction.cuh"
#include "renzan/model/dot_interaction.h"

namespace renzan::cuda {
namespace {

constexpr int64_t kLogitColumns = 8;  // the logit, and padding

InteractionShape InteractionOf(const ModelOptions& model, const DenseContext& context) {
  const int64_t vectors = 1 + std::ssize(model.tables);
  return {.samples = context.all_rows(),
          .vectors = static_cast<int32_t>(vectors),
          .dim = static_cast<int32_t>(model.embedding_dim),
          .out_stride = Padded(DotInteractionWidth(vectors, model.embedding_dim)),
          .precision = context.precision};
}

}  // namespace

DenseEngine::DenseEngine(const DeviceModelOptions& options, const Stream& stream)
    : stream_(stream),
      options_(options),
      model_(MakeModel(options.model)),
      places_(model_->layout()),
      products_({.precision = options.model.precision,
                 .tf32 = options.tf32,
                 .virtual_workers = options.virtual_workers,
                 .own_virtual_workers = options.own_virtual_workers}),
      products_beside_(products_.options()),
      device_places_(places_.places().size() * sizeof(ParameterPlace)),
      logit_place_(sizeof(ParameterPlace)) {
  const ModelOptions& model = options_.model;
  const size_t size = static_cast<size_t>(model_->layout().size());
  const size_t padded = static_cast<size_t>(places_.size());
  parameters_ = DeviceMemory(size * sizeof(float));
  weights_ = DeviceMemory(padded * static_cast<size_t>(BytesPerValue(model.precision)));
  last_bias_ = DeviceMemory(kLogitColumns * sizeof(float));
  gradients_ =
      DeviceMemory(padded * sizeof(float) * static_cast<size_t>(options.own_virtual_workers));
  if (!options.tables.empty()) {
    sum_ = DeviceMemory(size * sizeof(float));
    DenseOptimizer on_host(options.dense, 0);
    for (size_t i = 0; i < on_host.states().size(); ++i) states_.emplace_back(size * sizeof(float));
  }
  CopyToDevice(places_.places().data(), device_places_.bytes(), device_places_.as<void>(), stream_);
  const std::string last = fmt::format("top.{}.bias", model.sizes.top_mlp.size());
  ParameterPlace logit = places_.of(last);
  logit.padded_offset = 0;
  CopyToDevice(&logit, sizeof(logit), logit_place_.as<void>(), stream_);
  stream_.Synchronize();

  context_ = {.products = &products_,
              .products_beside = &products_beside_,
              .places = &places_,
              .precision = model.precision,
              .batches = options.own_virtual_workers,
              .rows = options.samples,
              .first_sample = options.first_virtual_worker * options.samples,
              .dropout = {model.sizes.dropout, model.seed},
              .weights = weights_.as<std::byte>(),
              .gradients = gradients_.as<float>(),
              .last_bias = last_bias_.as<float>(),
              .stream = &stream_,
              .beside = &beside_,
              .fork = &fork_};
  int64_t widest = 0;
  for (const ParameterPlace& place : places_.places())
    if (place.rows == 1) widest = std::max(widest, place.stride);
  column_sums_.emplace(context_.Shape(widest));
  context_.column_sums = &*column_sums_;
  dense_stride_ = Padded(model.num_dense);
  features_stride_ = model_->features_columns();
  dense_ = context_.Matrix(dense_stride_);
  features_ = context_.Matrix(features_stride_);
  d_features_ = context_.Matrix(features_stride_);
  d_bottom_ = context_.Matrix(model.embedding_dim);
  d_output_ = context_.Matrix(kLogitColumns);
  logits_ = DeviceMemory(static_cast<size_t>(context_.all_rows()) * sizeof(float));
  if (model.num_dense > 0)
    bottom_.emplace(context_, "bottom", model.sizes.bottom_mlp.size() + 1, false);
  if (HasDotInteraction(model)) {
    const int64_t width = InteractionOf(model, context_).out_stride;
    interactions_ = context_.Matrix(width);
    d_interactions_ = context_.Matrix(width);
  } else {
    cross_.emplace(context_, model.sizes.cross_layers, features_stride_);
    d_interactions_ = context_.Matrix(features_stride_);
  }
  top_.emplace(context_, "top", model.sizes.top_mlp.size() + 1, true);
}

void DenseEngine::PackWeights() const {
  const int places = static_cast<int>(places_.places().size());
  PackParameters(device_places_.as<ParameterPlace>(), places, places_.largest(), parameters(),
                 context_.precision, weights_.as<void>(), stream_.get());
  PackParameters(logit_place_.as<ParameterPlace>(), 1, 1, parameters(), Precision::kFloat32,
                 last_bias_.as<void>(), stream_.get());
}

void DenseEngine::ForwardDense(const float* dense, const int64_t* step) const {
  if (!bottom_) return;
  const ModelOptions& model = options_.model;
  const int64_t rows = context_.all_rows();
  ConvertRows(rows, model.num_dense, dense, model.num_dense, dense_.as<void>(), dense_stride_,
              context_.precision, stream_.get());
  bottom_->Forward(context_, dense_.as<void>(), step);
  CopyColumns(rows, model.embedding_dim, bottom_->output(), model.embedding_dim, features(),
              features_stride_, context_.precision, stream_.get());
}

void DenseEngine::ForwardFeatures(const int64_t* step) const {
  const void* interactions = interactions_.as<void>();
  if (cross_) {
    cross_->Forward(context_, features());
    interactions = cross_->output();
  } else {
    InteractionForward(InteractionOf(options_.model, context_), features(),
                       interactions_.as<void>(), stream_.get());
  }
  top_->Forward(context_, interactions, step);
}

void DenseEngine::CopyLogits() const {
  CopyColumns(context_.all_rows(), 1, top_->output(), kLogitColumns, logits_.as<void>(), 1,
              Precision::kFloat32, stream_.get());
}

void DenseEngine::BackwardToFeatures(const float* labels, int64_t global_batch) const {
  const ModelOptions& model = options_.model;
  const int64_t rows = context_.all_rows();
  LossGradient(rows, kLogitColumns, static_cast<const float*>(top_->output()), labels, global_batch,
               context_.precision, logits_.as<float>(), d_output_.as<void>(), stream_.get());
  void* const d_interactions = d_interactions_.as<void>();
  if (cross_) {
    top_->Backward(context_, cross_->output(), d_output_.as<void>(), d_interactions);
    cross_->Backward(context_, features(), d_interactions, d_features_.as<void>());
  } else {
    top_->Backward(context_, interactions_.as<void>(), d_output_.as<void>(), d_interactions);
    InteractionBackward(InteractionOf(model, context_), features(), d_interactions,
                        d_features_.as<void>(), stream_.get());
  }
}

void DenseEngine::BackwardToDense() const {
  if (bottom_) {
    const int64_t dim = options_.model.embedding_dim;
    CopyColumns(context_.all_rows(), dim, d_features(), features_stride_, d_bottom_.as<void>(), dim,
                context_.precision, stream_.get());
    bottom_->Backward(context_, dense_.as<void>(), d_bottom_.as<void>(), nullptr);
  }
  join_.Record(beside_.get());
  join_.Await(stream_.get());
}

void DenseEngine::SumGradients(int first, int n, float* flat) const {
  cuda::SumGradients(device_places_.as<ParameterPlace>(), static_cast<int>(places_.places().size()),
                     places_.largest(), n, gradients_.as<float>() + first * places_.size(),
                     places_.size(), flat, stream_.get());
}

void DenseEngine::Update(const DenseStep* step, int32_t* finite) const {
  const int64_t size = model_->layout().size();
  SumGradients(0, options_.own_virtual_workers, sum_.as<float>());
  ApplyDenseOptimizer(options_.dense.type, step, size, sum_.as<float>(),
                      states_.empty() ? nullptr : states_[0].as<float>(),
                      states_.size() < 2 ? nullptr : states_[1].as<float>(), parameters(), finite,
                      stream_.get());
}

}  // namespace renzan::cuda
