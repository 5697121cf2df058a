#pragma once

// The verb that examines this machine.

namespace CLI {
class App;
}

namespace renzan {

void AddDoctorVerb(CLI::App& app);

}  // namespace renzan
