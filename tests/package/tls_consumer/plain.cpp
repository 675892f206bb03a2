// A program that uses the client without TLS has no OpenSSL in it.
#include <redoubt/client.hpp>

#include <boost/asio/io_context.hpp>

#include <link.h>

#include <iostream>
#include <string_view>

int main() {
  boost::asio::io_context io;
  redoubt::client const redis(io, {.url = "redis://localhost:1"});
  int loaded = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* count) {
        std::string_view const name = info->dlpi_name;
        if (name.find("libssl") != name.npos || name.find("libcrypto") != name.npos)
          ++*static_cast<int*>(count);
        return 0;
      },
      &loaded);
  std::cout << loaded << " libraries of OpenSSL are loaded\n";
  return loaded;
}
