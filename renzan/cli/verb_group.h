#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace renzan {

// The verbs that `add` adds to `app` are listed under `group`.
void AddVerbGroup(CLI::App& app, const char* group, const std::function<void()>& add);

}  // namespace renzan
