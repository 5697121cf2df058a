#pragma once

// The verbs that explain the program.

namespace CLI {
class App;
}

namespace renzan {

void AddHelpVerb(CLI::App& app);
void AddCompletionVerb(CLI::App& app);

}  // namespace renzan
