// A service that links the installed package.
#include <redoubt/core/failure.hpp>

#include <iostream>
#include <sstream>

int main() {
  std::ostringstream text;
  text << redoubt::failure{};
  std::cout << text.str() << '\n';
  return text.str().empty() ? 1 : 0;
}
