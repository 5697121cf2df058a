#pragma once

// The rows of a table in memory, or of a stream of such tables, that another program or library
// hands over by Arrow's C stream interface (docs/formats/dataset.md).

#include <memory>
#include <string>

#include "renzan/data/row_source.h"

struct ArrowArrayStream;

namespace renzan {

// Reads from `stream`, which the caller releases after the source. Its columns are those of
// `schema`, the text of a schema file, which messages call `schema_name`. Throws kConfig for a
// schema that is wrong, kIo if the stream fails.
std::unique_ptr<RowSource> MakeArrowSource(ArrowArrayStream* stream, const std::string& schema,
                                           const std::string& schema_name, Labels labels);

}  // namespace renzan
