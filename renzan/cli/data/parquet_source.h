#pragma once

// The rows of Parquet files, which librenzan_parquet.so reads.

#include <memory>

#include "renzan/data/row_source.h"

namespace renzan {

// Of ImportOptions::inputs and `schema`, a schema file as for CSV. Throws kConfig if the library is
// not installed, kNoInput or kData, with the file's name, if a file is no Parquet or has other
// columns than the first.
std::unique_ptr<RowSource> MakeParquetSource(const ImportOptions& options);

}  // namespace renzan
