#include "renzan/cli/verb_group.h"

#include <CLI/CLI.hpp>
#include <vector>

namespace renzan {

void AddVerbGroup(CLI::App& app, const char* group, const std::function<void()>& add) {
  const auto verbs = [&] { return app.get_subcommands([](CLI::App*) { return true; }); };
  const size_t before = verbs().size();
  add();
  const std::vector<CLI::App*> all = verbs();
  for (size_t i = before; i < all.size(); ++i) all[i]->group(group);
}

}  // namespace renzan
