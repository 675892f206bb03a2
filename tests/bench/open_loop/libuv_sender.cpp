// SPDX-License-Identifier: BSL-1.0
#include "libuv_sender.hpp"

#if defined(REDOUBT_BENCH_LIBUV) && __has_include(<hiredis/adapters/libuv.h>)

#include "throughput/libuv_connection.hpp"

namespace bench {
namespace {

class libuv_sender final : public sender, private libuv_connection {
 public:
  explicit libuv_sender(int port) : libuv_connection(port) {}

  [[nodiscard]] std::string_view name() const override { return "hiredis-async"; }
  void send(std::size_t i, arrivals& into) override {
    into_ = &into;
    auto const& k = into.data().keys[i % into.data().keys.size()];
    // NOLINTNEXTLINE: the number travels in the place of a pointer
    redisAsyncCommand(connection_, &libuv_sender::on_reply, reinterpret_cast<void*>(i), "GET %b", k.data(),
                      k.size());
  }
  void turn() override { uv_run(&loop_, UV_RUN_NOWAIT); }

 private:
  static void on_reply(redisAsyncContext* c, void* answer, void* number) {
    auto* const self = static_cast<libuv_sender*>(static_cast<libuv_connection*>(c->data));
    auto& into = *self->into_;
    auto const i = reinterpret_cast<std::size_t>(number);
    auto const* const r = static_cast<redisReply const*>(answer);
    r && r->type == REDIS_REPLY_STRING ? into.answered(i, {r->str, r->len}) : into.failed(i);
  }

  arrivals* into_ = nullptr;
};

}  // namespace

std::unique_ptr<sender> make_libuv_sender(int port) { return std::make_unique<libuv_sender>(port); }

}  // namespace bench

#else

namespace bench {
std::unique_ptr<sender> make_libuv_sender(int) { return nullptr; }
}  // namespace bench

#endif
