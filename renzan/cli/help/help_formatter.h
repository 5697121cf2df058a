#pragma once

namespace CLI {
class App;
}

namespace renzan {

// `--help` prints what CLI11 does, except that an option of which each occurrence takes one value
// is not shown as one that takes several. Before the verbs are added.
void UseHelpFormatter(CLI::App& app);

}  // namespace renzan
