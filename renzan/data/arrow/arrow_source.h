#pragma once

// The rows of tables in memory, or of streams of such tables, that another program or library hands
// over by Arrow's C stream interface (docs/formats/dataset.md).

#include <memory>
#include <string>
#include <vector>

#include "renzan/data/row_source.h"

struct ArrowArrayStream;

namespace renzan {

struct ArrowInput {
  ArrowArrayStream* stream = nullptr;  // which the caller releases after the source
  std::string name = "";               // of the file behind it; "": it is a table in memory
};

// Reads the streams one after the other, as one table. Its columns are those of `schema`, the text
// of a schema file, which messages call `schema_name`. Begin() throws kConfig for a schema that is
// wrong, and kData if streams have other columns than the first, or columns that are used have
// types that are not alike (ReadsAlike), before any row is read. Rows are counted from 0 in each
// stream.
std::unique_ptr<RowSource> MakeArrowSource(const std::vector<ArrowInput>& inputs,
                                           const std::string& schema,
                                           const std::string& schema_name, Labels labels);
// Of one table.
std::unique_ptr<RowSource> MakeArrowSource(ArrowArrayStream* stream, const std::string& schema,
                                           const std::string& schema_name, Labels labels);

}  // namespace renzan
