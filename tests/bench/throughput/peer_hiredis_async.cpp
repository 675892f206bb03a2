// SPDX-License-Identifier: BSL-1.0
//
// hiredis' asynchronous interface over libuv, where both are installed.
#include "peer.hpp"
#include "peer_hiredis.hpp"

#if defined(REDOUBT_BENCH_LIBUV) && __has_include(<hiredis/adapters/libuv.h>)

#include "libuv_connection.hpp"

namespace bench {
namespace {

class over_libuv final : public peer, private libuv_connection {
 public:
  explicit over_libuv(int port) : libuv_connection(port) {}

  [[nodiscard]] std::string_view name() const override { return "hiredis-async"; }
  [[nodiscard]] std::string_view about() const override {
    return "redisAsyncCommand over libuv, one connection, callbacks on its thread; no time limit";
  }

  sample run(cell const& what, double seconds) override {
    bool const batches = what.of->what == shape::batch;
    std::vector<batch> all(batches ? what.in_flight : 0);
    std::vector<caller> callers(what.in_flight * (batches ? batch_size : 1), caller{this, nullptr, 0});
    run_meter meter(what, seconds);
    meter_ = &meter;
    open_ = what.in_flight;
    for (std::size_t i = 0; i < callers.size(); ++i) {
      if (batches) {
        callers[i].together = &all[i / batch_size];
        all[i / batch_size].members.push_back(&callers[i]);
      } else {
        callers[i].ask();
      }
    }
    for (auto& one : all) one.ask(meter);
    uv_run(&loop_, UV_RUN_DEFAULT);
    if (open_ != 0) throw std::runtime_error("hiredis: the connection was lost");
    return meter.finish();
  }

 private:
  struct caller;

  /// Commands that are sent together and are over when all are answered.
  struct batch {
    std::vector<caller*> members{};
    std::size_t open = 0;

    void ask(run_meter& meter) {
      open = members.size();
      meter.call_begins();
      for (auto* one : members) one->send();
    }
  };

  struct caller {
    over_libuv* self;
    batch* together;
    std::size_t asked;

    void ask() {
      self->meter_->call_begins();
      send();
    }

    void send() {
      auto& meter = *self->meter_;
      asked = meter.next_key();
      auto const& k = meter.key(asked);
      auto const& v = meter.value(asked);
      auto* const c = self->connection_;
      switch (meter.of().what) {
        case shape::set:
          redisAsyncCommand(c, &caller::on_reply, this, "SET %b %b", k.data(), k.size(), v.data(), v.size());
          break;
        case shape::range:
          redisAsyncCommand(c, &caller::on_reply, this, "LRANGE %b 0 -1", k.data(), k.size());
          break;
        default: redisAsyncCommand(c, &caller::on_reply, this, "GET %b", k.data(), k.size());
      }
    }

    static void on_reply(redisAsyncContext*, void* answer, void* data) {
      auto* const me = static_cast<caller*>(data);
      auto const* const r = static_cast<redisReply const*>(answer);
      auto& meter = *me->self->meter_;
      if (r == nullptr) {
        meter.failed();
        uv_stop(&me->self->loop_);
        return;
      }
      judge_hiredis(meter, *r, me->asked);
      if (me->together && --me->together->open > 0) return;
      meter.call_ends();
      if (!meter.over()) return me->together ? me->together->ask(meter) : me->ask();
      if (--me->self->open_ == 0) uv_stop(&me->self->loop_);
    }
  };

  run_meter* meter_ = nullptr;
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
