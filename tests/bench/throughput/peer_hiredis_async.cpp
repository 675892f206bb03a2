// SPDX-License-Identifier: BSL-1.0
//
// hiredis' asynchronous interface over libuv, where both are installed.
#include "peer.hpp"

#if defined(REDOUBT_BENCH_LIBUV) && __has_include(<hiredis/adapters/libuv.h>)

#include <uv.h>

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <hiredis/adapters/libuv.h>

namespace bench {
namespace {

class over_libuv final : public peer {
 public:
  explicit over_libuv(int port) {
    uv_loop_init(&loop_);
    connection_ = redisAsyncConnect("127.0.0.1", port);
    if (connection_ == nullptr || connection_->err != 0) throw std::runtime_error("hiredis: cannot connect");
    connection_->data = this;
    redisLibuvAttach(connection_, &loop_);
    redisAsyncSetConnectCallback(connection_, [](redisAsyncContext const* c, int status) {
      static_cast<over_libuv*>(c->data)->connected_ = status == REDIS_OK;
      uv_stop(&static_cast<over_libuv*>(c->data)->loop_);
    });
    redisAsyncSetDisconnectCallback(connection_, [](redisAsyncContext const* c, int) {
      static_cast<over_libuv*>(c->data)->connection_ = nullptr;
    });
    uv_run(&loop_, UV_RUN_DEFAULT);
    if (!connected_) throw std::runtime_error("hiredis: cannot connect");
  }
  ~over_libuv() override {
    if (connection_ != nullptr) redisAsyncFree(connection_);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }

  [[nodiscard]] std::string_view name() const override { return "hiredis-async"; }
  [[nodiscard]] std::string_view about() const override {
    return "redisAsyncCommand over libuv, one connection, callbacks on its thread; no time limit";
  }

  sample run(cell const& what, double seconds) override {
    std::vector<caller> callers(what.in_flight, caller{this, 0});
    run_meter meter(what, seconds);
    meter_ = &meter;
    op_ = what.op;
    open_ = callers.size();
    for (auto& one : callers) one.ask();
    uv_run(&loop_, UV_RUN_DEFAULT);
    if (open_ != 0) throw std::runtime_error("hiredis: the connection was lost");
    return meter.finish();
  }

 private:
  struct caller {
    over_libuv* self;
    std::size_t asked;

    void ask() {
      auto& meter = *self->meter_;
      asked = meter.next_key();
      auto const& k = key(asked);
      auto const& v = value(asked);
      meter.call_begins();
      if (self->op_ == operation::get) {
        redisAsyncCommand(self->connection_, &caller::on_reply, this, "GET %b", k.data(), k.size());
      } else {
        redisAsyncCommand(self->connection_, &caller::on_reply, this, "SET %b %b", k.data(), k.size(),
                          v.data(), v.size());
      }
    }

    static void on_reply(redisAsyncContext*, void* answer, void* data) {
      auto* const me = static_cast<caller*>(data);
      auto const* const r = static_cast<redisReply const*>(answer);
      auto& meter = *me->self->meter_;
      meter.call_ends();
      if (r == nullptr) {
        meter.failed();
        uv_stop(&me->self->loop_);
        return;
      }
      std::string_view const text(
          r->str, r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS ? r->len : 0);
      if (me->self->op_ == operation::get && r->type == REDIS_REPLY_STRING) {
        meter.answered(text, me->asked);
      } else if (me->self->op_ == operation::set && r->type == REDIS_REPLY_STATUS) {
        meter.acknowledged(text);
      } else {
        meter.answered_otherwise();
      }
      if (!meter.over()) return me->ask();
      if (--me->self->open_ == 0) uv_stop(&me->self->loop_);
    }
  };

  uv_loop_t loop_{};
  redisAsyncContext* connection_ = nullptr;
  bool connected_ = false;
  run_meter* meter_ = nullptr;
  operation op_ = operation::get;
  std::size_t open_ = 0;
};

}  // namespace

void add_hiredis_async(peer_list& peers, int port) { peers.push_back(std::make_unique<over_libuv>(port)); }

}  // namespace bench

#else

namespace bench {
void add_hiredis_async(peer_list&, int) {}
}  // namespace bench

#endif
