#include "renzan/dense/load_parameters.h"

namespace renzan {

void LoadParameters(CheckpointReader& reader, const ParameterLayout& layout,
                    std::span<float> values) {
  for (const Parameter& parameter : layout.parameters())
    reader.Read(
        parameter.name, parameter.shape,
        values.subspan(static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.size)));
}

}  // namespace renzan
