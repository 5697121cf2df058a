#pragma once

// What an import takes over from another dataset (--vocabulary-from), usually the training data.

#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/import.h"
#include "renzan/data/vocabulary.h"

namespace renzan {

// The vocabularies of the schema's categorical features, which may grow if `options.grow`. Sets the
// constants of the schema's transforms to those of that dataset. Throws Error kConfig unless it has
// the same features, preprocessed alike; kUsage for options that do not go with it.
std::vector<Vocabulary> TakeVocabularies(const ImportOptions& options, DatasetSchema* schema);

}  // namespace renzan
