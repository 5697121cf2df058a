// In which layout each value of a model is that is a sequence, and the conversions between them.

#include <algorithm>

#include "renzan/model/blocks/convert_sequence.h"
#include "renzan/model/model.h"

namespace renzan {

// Blocks give each sample's newest position alone where nothing reads another.
void Model::NarrowToNewest() {
  for (size_t n = nodes_.size(); n-- > 0;) {
    Block& block = *nodes_[n].block;
    const size_t output = nodes_[n].output;
    if (!block.sequence() || block.NewestNeeds() == Block::Needs::kUnable) continue;
    bool reads_newest = std::find(outputs_.begin(), outputs_.end(), output) == outputs_.end();
    for (const Node& node : nodes_)
      for (size_t i = 0; i < node.inputs.size(); ++i)
        reads_newest &= node.inputs[i] != output || node.block->TakesAs(i) == VectorLayout::kNewest;
    if (!reads_newest) continue;
    block.GiveOnlyNewest();
    values_[output].layout = block.GivesAs();
  }
}

// Puts conversions before the blocks that take a sequence in another layout than it has.
void Model::ConvertSequences() {
  for (size_t n = 0; n < nodes_.size(); ++n)
    for (size_t i = 0; i < nodes_[n].inputs.size(); ++i) {
      const size_t input = nodes_[n].inputs[i];
      if (!values_[input].sequence) continue;
      const VectorLayout wanted = nodes_[n].block->TakesAs(i);
      if (values_[input].layout == wanted) continue;
      const size_t nodes = nodes_.size(), converted = Converted(input, wanted, n);
      n += nodes_.size() - nodes;
      nodes_[n].inputs[i] = converted;
    }
  for (size_t& output : outputs_)
    if (values_[output].layout != VectorLayout::kColumns)
      output = Converted(output, VectorLayout::kColumns, nodes_.size());
}

// The value in that layout: if it is new, by a block that is put before that node.
size_t Model::Converted(size_t value, VectorLayout layout, size_t before) {
  for (size_t v = 0; v < values_.size(); ++v)
    if (values_[v].converted == value && values_[v].layout == layout) return v;
  Value converted = {.name = "",
                     .shape = values_[value].shape,
                     .has_gradient = values_[value].has_gradient,
                     .sequence = values_[value].sequence,
                     .layout = layout,
                     .converted = value};
  values_[value].is_float32 = false;
  nodes_.insert(nodes_.begin() + static_cast<std::ptrdiff_t>(before),
                Node{.block = MakeConvertSequence(converted.shape, *converted.sequence,
                                                  values_[value].layout, layout),
                     .inputs = {value},
                     .output = values_.size()});
  values_.push_back(std::move(converted));
  return values_.size() - 1;
}

// Of its vectors or their gradients.
size_t Model::AddBuffer(const Value& value, Precision precision) {
  if (value.layout == VectorLayout::kColumns)
    return buffers_.Add(ColumnsOf(value.shape), precision);
  return buffers_.Add(value.shape.front().dim, precision,
                      value.layout == VectorLayout::kRows ? std::ssize(value.shape) : 1);
}

}  // namespace renzan
