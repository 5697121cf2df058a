#include "renzan/cli/train/text_widths.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

// Makes room for a text.
void Widen(std::string_view text, NpyField* field) {
  if (!text.empty() && text.back() == '\0')
    Fail(ErrorCode::kData,
         "--with {}: a text ends in a zero byte, which NumPy does not keep: write .parquet or .csv",
         Escape(field->name));
  const int64_t width =
      field->type == NpyField::Type::kText ? CountCharacters(text) : std::ssize(text);
  field->width = std::max(field->width, width);
}

}  // namespace

void SetWidths(const Dataset& dataset, RowRange rows, std::span<const ScoreColumn> columns,
               std::vector<NpyField>* fields) {
  std::vector<size_t> bags;
  for (size_t c = 0; c < columns.size(); ++c) {
    const ScoreColumn& column = columns[c];
    NpyField* const field = &(*fields)[c];
    if (column.is_float() || column.is_integer()) continue;
    if (column.is_bag) {
      bags.push_back(c);
    } else if (column.key) {
      for (int64_t row = rows.begin; row < rows.end; ++row) Widen(column.key->Text(row), field);
    } else {
      for (const std::string& value : column.names->values()) Widen(value, field);
      Widen(column.names->Shown(Vocabulary::kRare), field);
    }
  }
  constexpr int64_t kBatch = 4096;
  ScoredRows some{rows.begin, {}};
  for (; !bags.empty() && some.first < rows.end; some.first += some.batch.size) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(kBatch, rows.end - some.first)));
    std::iota(numbers.begin(), numbers.end(), some.first);
    dataset.Read(numbers, &some.batch);
    for (const size_t c : bags)
      for (size_t row = 0; row < numbers.size(); ++row)
        Widen(TextOf(columns[c], dataset.schema(), some, row), &(*fields)[c]);
  }
}

}  // namespace renzan
