#pragma once

// Which vocabulary each categorical feature gets, according to an import's options and schema.

#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/import.h"
#include "renzan/data/vocabulary.h"

namespace renzan {

// One for each of schema.categorical. Throws kUsage.
std::vector<Vocabulary> VocabulariesFromOptions(const ImportOptions& options,
                                                const DatasetSchema& schema);

// Sets which lookups train the row for unseen values (Vocabulary::TrainUnseen).
// `unseen_of_columns`: the shares that a schema file sets for them, or NaN. Throws kUsage for a
// name that is not a feature's, an invalid value, and a feature's share that is given twice
// or has no effect.
void TrainUnseenOfOptions(const ImportOptions& options, const DatasetSchema& schema,
                          const std::vector<double>& unseen_of_columns,
                          std::vector<Vocabulary>* vocabularies);

}  // namespace renzan
