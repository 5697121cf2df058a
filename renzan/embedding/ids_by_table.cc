#include "renzan/embedding/ids_by_table.h"

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan {
namespace {

std::span<const int64_t> BagOf(const IdsView& feature, size_t sample) {
  if (feature.offsets.empty()) return feature.values.subspan(sample, 1);
  const auto first = static_cast<size_t>(feature.offsets[sample]);
  return feature.values.subspan(first, static_cast<size_t>(feature.offsets[sample + 1]) - first);
}

size_t SamplesOf(const IdsView& feature) {
  return feature.offsets.empty() ? feature.values.size() : feature.offsets.size() - 1;
}

}  // namespace

void IdsByTable::Assign(std::span<const TableSpec> tables, std::span<const IdsView> features) {
  views_.clear();
  copies_.resize(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& table = tables[t];
    CHECK(features.size() >= table.features.size());
    const std::span<const IdsView> own = features.first(table.features.size());
    features = features.subspan(own.size());
    if (table.bags() == 1 && table.features[0] == 0) {
      views_.push_back(own[0]);
      continue;
    }
    CopyBags(table, own, &copies_[t]);
    views_.push_back({copies_[t].values, copies_[t].offsets});
  }
  CHECK(features.empty());
}

void IdsByTable::CopyBags(const TableSpec& table, std::span<const IdsView> features, Copy* copy) {
  copy->values.clear();
  copy->offsets.clear();
  const auto end_bag = [&] {
    if (table.multi_hot) copy->offsets.push_back(static_cast<int32_t>(copy->values.size()));
  };
  end_bag();
  for (size_t sample = 0; sample < SamplesOf(features[0]); ++sample) {
    for (size_t f = 0; f < features.size(); ++f) {
      const std::span<const int64_t> ids = BagOf(features[f], sample);
      const auto positions = static_cast<size_t>(table.features[f]);
      if (positions > 0 && ids.size() > positions)
        Fail(ErrorCode::kData, "table {}: a sequence of {}, but it has at most {}",
             Escape(table.name), Counted(ids.size(), "id"), Counted(positions, "position"));
      for (size_t i = 0; i < ids.size(); ++i) {
        copy->values.push_back(ids[i]);
        if (positions > 0) end_bag();
      }
      if (positions == 0) end_bag();
      for (size_t empty = ids.size(); empty < positions; ++empty) end_bag();
    }
  }
}

}  // namespace renzan
