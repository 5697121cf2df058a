#pragma once

namespace CLI {
class App;
}

namespace renzan {

void AddUploadVerb(CLI::App& app);

}  // namespace renzan
