// What a model refuses about a block besides its shapes.

#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/model/blocks/block_error.h"
#include "renzan/model/model.h"

namespace renzan {

// Throws BlockError if two parameters have one name, among those from `first` on that a block has
// added.
void Model::CheckNames(const GraphBlock& block, size_t first) const {
  const std::vector<Parameter>& all = layout_.parameters();
  for (size_t i = first; i < all.size(); ++i)
    for (size_t j = first; j < i; ++j)
      if (all[i].name == all[j].name)
        RejectBlock(block.where, block.name,
                    fmt::format(": two vectors of its input have one name, so {} would be two "
                                "parameters: give it each vector once",
                                all[i].name));
}

// Throws BlockError if a block would work otherwise in predictions, which have no negatives.
void Model::CheckNegatives(const GraphBlock& block, const Node& node) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& input = values_[node.inputs[i]];
    const bool are_negatives =
        input.sequence && !options_.sequences[input.sequence->index].negatives_of.empty();
    if (node.block->TakesNegatives(i) && !are_negatives)
      RejectBlock(block.where, block.name,
                  fmt::format("takes negatives, which {} is not: set model.negatives, such as "
                              "{{item: 100}}, and name embeddings.item.negatives",
                              UnescapeName(input.name)));
    if (are_negatives && !node.block->TakesNegatives(i) && node.block->sequence() != input.sequence)
      RejectBlock(
          block.where, block.name,
          fmt::format("takes {}, but only training has negatives: give them to a sampled_softmax",
                      UnescapeName(input.name)));
  }
}

}  // namespace renzan
