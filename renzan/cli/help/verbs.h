#pragma once

// The verbs for help and shell completion.

namespace CLI {
class App;
}

namespace renzan {

void AddHelpVerb(CLI::App& app);
void AddCompletionVerb(CLI::App& app);

}  // namespace renzan
