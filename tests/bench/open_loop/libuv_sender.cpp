// SPDX-License-Identifier: BSL-1.0
#include "libuv_sender.hpp"

#include <stdexcept>

#if defined(REDOUBT_BENCH_LIBUV) && __has_include(<hiredis/adapters/libuv.h>)

#include <uv.h>

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <hiredis/adapters/libuv.h>

namespace bench {
namespace {

class libuv_sender final : public sender {
 public:
  explicit libuv_sender(int port) {
    uv_loop_init(&loop_);
    connection_ = redisAsyncConnect("127.0.0.1", port);
    if (connection_ == nullptr || connection_->err != 0) throw std::runtime_error("hiredis: cannot connect");
    connection_->data = this;
    redisLibuvAttach(connection_, &loop_);
    redisAsyncSetConnectCallback(connection_, [](redisAsyncContext const* c, int status) {
      static_cast<libuv_sender*>(c->data)->connected_ = status == REDIS_OK;
      uv_stop(&static_cast<libuv_sender*>(c->data)->loop_);
    });
    redisAsyncSetDisconnectCallback(connection_, [](redisAsyncContext const* c, int) {
      static_cast<libuv_sender*>(c->data)->connection_ = nullptr;
    });
    uv_run(&loop_, UV_RUN_DEFAULT);
    if (!connected_) throw std::runtime_error("hiredis: cannot connect");
  }
  ~libuv_sender() override {
    if (connection_ != nullptr) redisAsyncFree(connection_);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }

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
    auto& into = *static_cast<libuv_sender*>(c->data)->into_;
    auto const i = reinterpret_cast<std::size_t>(number);
    auto const* const r = static_cast<redisReply const*>(answer);
    r && r->type == REDIS_REPLY_STRING ? into.answered(i, {r->str, r->len}) : into.failed(i);
  }

  uv_loop_t loop_{};
  redisAsyncContext* connection_ = nullptr;
  bool connected_ = false;
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
