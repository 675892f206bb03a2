// SPDX-License-Identifier: BSL-1.0
//
// Calls of a client to a peer in this process, under a clock that stands still, for a tool that counts
// instructions inside `measured`: no kernel, no time, no other thread, so the count is the same in every run.
// See run.sh here.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/version.hpp>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <redoubt/client.hpp>
#include <redoubt/net/connection.hpp>

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace redoubt;

/// It is always the same moment, and no wait ends.
class standing_clock final : public time_source {
 public:
  explicit standing_clock(asio::execution_context& context) : time_source(context) {}
  [[nodiscard]] time_point now() const noexcept override { return time_point(std::chrono::hours(1)); }
  [[nodiscard]] std::unique_ptr<timer_backend> make_timer(asio::any_io_executor const&) override {
    struct never final : timer_backend {
      void wait(time_point, handler) override {}
      void cancel() override {}
    };
    return std::make_unique<never>();
  }
};

/// What the peer answers.
struct script {
  std::size_t command_size = 0;  ///< Of every command but the handshake's; 0: no answer at all.
  std::string answer;
};
script the_script;

/// A connection to a peer that has its answers ready. All commands of a run have the same size, so it need
/// not read them to know how many they are.
class ready_transport {
 public:
  using executor_type = asio::strand<redoubt::detail::direct_executor>;
  using addresses = std::vector<int>;

  ready_transport(executor_type strand, client_options const&) : strand_(std::move(strand)) {}

  void async_resolve(std::function<void(errc, addresses)> done) {
    asio::post(strand_, [d = std::move(done)] { d(errc::unspecified, {}); });
  }
  void adopt(addresses) {}
  void async_connect(time_point, std::function<void(errc)> done) {
    asio::post(strand_, [d = std::move(done)] { d(errc::unspecified); });
  }
  template <class Handler>
  void async_read_some(asio::mutable_buffer into, Handler handler) {
    into_ = into;
    reader_ = std::make_unique<reading>(std::move(handler));
    deliver();
  }
  std::size_t write_now(asio::const_buffer bytes, error_code&) {
    if (std::exchange(greeted_, true)) {
      auto n = the_script.command_size == 0 ? 0 : bytes.size() / the_script.command_size;
      while (n-- > 0) answers_ += the_script.answer;
    } else {
      std::string_view const hello(static_cast<char const*>(bytes.data()), bytes.size());
      for (auto n = std::count(hello.begin(), hello.end(), '*'); n > 1; --n) answers_ += "+OK\r\n";
      answers_ += "+PONG\r\n";
    }
    deliver();
    return bytes.size();
  }
  template <class Handler>
  void async_write_some(asio::const_buffer, Handler) {}  // never asked: write_now takes everything
  void close() noexcept { reader_.reset(); }

 private:
  using reading = asio::any_completion_handler<void(error_code, std::size_t)>;

  void deliver() {
    if (!reader_ || answers_.empty()) return;
    auto const n = asio::buffer_copy(into_, asio::buffer(answers_));
    answers_.erase(0, n);
    auto done = std::move(*reader_);
    reader_.reset();
    asio::post(strand_, [d = std::move(done), n]() mutable { std::move(d)(error_code(), n); });
  }

  executor_type strand_;
  asio::mutable_buffer into_;
  std::unique_ptr<reading> reader_;
  std::string answers_;
  bool greeted_ = false;
};

class ready_connections final : public detail::connection_factory {
 public:
  explicit ready_connections(asio::execution_context& context) : detail::connection_factory(context) {}
  [[nodiscard]] std::vector<std::shared_ptr<detail::connection>> make(
      asio::any_io_executor const& executor, client_options const& options,
      std::shared_ptr<detail::load_gate> const& gate) override {
    return {std::make_shared<detail::basic_connection<ready_transport>>(executor, options, gate, 1)};
  }
};

/// Makes calls one after the other, or several next to each other.
class caller {
 public:
  caller(client& c, command what, bool fails) : client_(c), what_(std::move(what)), fails_(fails) {}

  /// `run` starts `calls` of them, `in_flight` at a time, and runs the context until they have ended.
  void make(std::size_t calls, std::size_t in_flight, asio::io_context& context,
            void (*run)(asio::io_context&)) {
    left_ = calls;
    ended_ = 0;
    for (std::size_t i = 0; i < in_flight; ++i) begin();
    context.restart();
    run(context);
    if (ended_ != calls || bad_ != 0) {
      fmt::print(stderr, "{} of {} calls ended, {} of them not as they should\n", ended_, calls, bad_);
      std::exit(1);
    }
  }

 private:
  void begin() {
    if (left_ == 0) return;
    --left_;
    client_.async_call(what_, {}, [this](result<reply> r) {
      ++ended_;
      if (r.has_value() == fails_) ++bad_;
      begin();
    });
  }

  client& client_;
  command what_;
  bool fails_;
  std::size_t left_ = 0;
  std::size_t ended_ = 0;
  std::size_t bad_ = 0;
};

void not_measured(asio::io_context& context) { context.run(); }

std::string toolchain() {
#if defined(__clang__)
  auto const compiler = fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  auto const compiler = fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
  return fmt::format("{}, Boost {}.{}.{}, hiredis {}.{}.{}", compiler, BOOST_VERSION / 100000,
                     BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100, HIREDIS_MAJOR, HIREDIS_MINOR,
                     HIREDIS_PATCH);
}

}  // namespace

/// What is counted: the name is for the tool.
extern "C" __attribute__((noinline)) void measured(asio::io_context& context) {
  context.run();
  asm volatile("");  // not a tail call
}

int main(int argc, char** argv) {
  std::string_view const what = argc == 3 ? argv[1] : "";
  if (argc == 2 && std::string_view(argv[1]) == "--toolchain") {
    fmt::print("{}\n", toolchain());
    return 0;
  }
  auto const calls = argc == 3 ? static_cast<std::size_t>(std::strtoul(argv[2], nullptr, 10)) : 0;
  std::string const value(100, 'v');
  bool const rejected = what == "rejected";
  command cmd =
      what == "set-64" ? command("SET", "some:key:1234567", value) : command("GET", "some:key:1234567");
  auto const in_flight = what.ends_with("-64") ? 64U : 1U;
  if (calls == 0 || (what != "get-1" && what != "get-64" && what != "set-64" && !rejected)) {
    fmt::print(stderr, "Usage: redoubt_instructions get-1|get-64|set-64|rejected CALLS, or --toolchain\n");
    return 2;
  }
  the_script = {cmd.wire().size(), what == "set-64" ? "+OK\r\n" : "$100\r\n" + value + "\r\n"};

  asio::io_context context(1);
  asio::make_service<standing_clock>(context);
  asio::make_service<ready_connections>(context);
  client_options options;
  if (rejected) options.bounds.in_flight = 1;
  client redis(context, options);
  if (rejected) {
    the_script.command_size = 0;
    redis.async_call(cmd, {}, [](result<reply>) {});  // takes the only place for good
    context.poll();
  }
  caller calls_of(redis, cmd, rejected);
  calls_of.make(4 * in_flight + 100, in_flight, context, &not_measured);
  calls_of.make(calls, in_flight, context, &measured);
}
