#pragma once

// The verb that checks this machine.

namespace CLI {
class App;
}

namespace renzan {

void AddDoctorVerb(CLI::App& app);

}  // namespace renzan
