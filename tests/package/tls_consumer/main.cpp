// Without enable_tls() a client for rediss:// is refused where it is made; with it, one is made.
#include <redoubt/client.hpp>
#include <redoubt/tls.hpp>

#include <boost/asio/io_context.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

int main() {
  boost::asio::io_context io;
  redoubt::client_options const options{.url = "rediss://localhost:1"};
  try {
    redoubt::client refused(io, options);
    std::cout << "made without TLS\n";
    return 1;
  } catch (std::invalid_argument const& e) {
    std::cout << e.what() << '\n';
    if (std::string(e.what()).find("enable_tls()") == std::string::npos) return 1;
  }
  redoubt::enable_tls();
  redoubt::client made(io, options);
  return 0;
}
