#pragma once

namespace CLI {
class App;
}

namespace renzan {

// Makes every option for a whole number read decimal digits only. CLI11 reads 010 as octal 8, 0x10
// as 16, and a number that is too large as the largest.
void ReadWholeNumbersAsDecimal(CLI::App& app);

}  // namespace renzan
