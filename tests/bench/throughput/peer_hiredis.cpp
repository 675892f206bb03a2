// SPDX-License-Identifier: BSL-1.0
//
// hiredis used the blocking way: one command at a time on a connection per thread, and batches on one
// connection.
#include <atomic>
#include <mutex>
#include <thread>

#include <hiredis/hiredis.h>

#include "peer.hpp"

namespace bench {
namespace {

struct free_context {
  void operator()(redisContext* c) const noexcept { redisFree(c); }
};
using context = std::unique_ptr<redisContext, free_context>;

struct free_reply {
  void operator()(redisReply* r) const noexcept { freeReplyObject(r); }
};
using reply = std::unique_ptr<redisReply, free_reply>;

context connect(int port) {
  context c(redisConnect("127.0.0.1", port));
  if (!c || c->err != 0)
    throw std::runtime_error(std::string("hiredis: ") + (c ? c->errstr : "out of memory"));
  return c;
}

void judge(run_meter& meter, operation op, redisReply const* r, std::size_t i) {
  if (r == nullptr) throw std::runtime_error("hiredis: the connection was lost");
  std::string_view const text(r->str,
                              r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS ? r->len : 0);
  if (op == operation::get && r->type == REDIS_REPLY_STRING) {
    meter.answered(text, i);
  } else if (op == operation::set && r->type == REDIS_REPLY_STATUS) {
    meter.acknowledged(text);
  } else {
    meter.answered_otherwise();
  }
}

class blocking final : public peer {
 public:
  explicit blocking(int port) : port_(port) {}
  [[nodiscard]] std::string_view name() const override { return "hiredis-blocking"; }
  [[nodiscard]] std::string_view about() const override {
    return "redisCommand; a thread and a connection for each command in flight; no time limit";
  }
  /// Hundreds of threads measure the scheduler, not the client.
  [[nodiscard]] bool takes(cell const& what) const override { return what.in_flight <= 8; }

  sample run(cell const& what, double seconds) override {
    while (connections_.size() < what.in_flight) connections_.push_back(connect(port_));
    if (what.in_flight == 1) {
      run_meter meter(what, seconds);
      work(*connections_[0], meter, what.op);
      return meter.finish();
    }
    run_meter whole(what, seconds);
    std::mutex mutex;
    sample sum;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < what.in_flight; ++i) {
      threads.emplace_back([&, i] {
        run_meter meter(what, seconds);
        try {
          work(*connections_[i], meter, what.op);
        } catch (std::runtime_error const&) {
          meter.failed();
        }
        auto const part = meter.finish();
        std::lock_guard const lock(mutex);
        sum.answers += part.answers;
        sum.wrong += part.wrong;
        sum.failed += part.failed;
        sum.allocations += part.allocations;
      });
    }
    for (auto& thread : threads) thread.join();
    auto out = whole.finish();
    out.answers = sum.answers;
    out.wrong = sum.wrong;
    out.failed = sum.failed;
    out.allocations = sum.allocations;
    return out;
  }

 private:
  static void work(redisContext& c, run_meter& meter, operation op) {
    while (!meter.over()) {
      auto const i = meter.next_key();
      auto const& k = key(i);
      auto const& v = value(i);
      meter.call_begins();
      void* answer = op == operation::get
                         ? redisCommand(&c, "GET %b", k.data(), k.size())
                         : redisCommand(&c, "SET %b %b", k.data(), k.size(), v.data(), v.size());
      reply const r(static_cast<redisReply*>(answer));
      judge(meter, op, r.get(), i);
      meter.call_ends();
    }
  }

  int port_;
  std::vector<context> connections_;
};

class pipelined final : public peer {
 public:
  explicit pipelined(int port) : connection_(connect(port)) {}
  [[nodiscard]] std::string_view name() const override { return "hiredis-pipelined"; }
  [[nodiscard]] std::string_view about() const override {
    return "redisAppendCommand and redisGetReply; batches of as many commands as are in flight; no time "
           "limit";
  }
  [[nodiscard]] bool takes(cell const& what) const override { return what.in_flight > 1; }

  sample run(cell const& what, double seconds) override {
    std::vector<std::size_t> asked(what.in_flight);
    run_meter meter(what, seconds);
    auto* c = connection_.get();
    for (bool last = false; !last;) {
      for (auto& i : asked) {
        last = meter.over() || last;
        i = meter.next_key();
        auto const& k = key(i);
        auto const& v = value(i);
        if (what.op == operation::get) {
          redisAppendCommand(c, "GET %b", k.data(), k.size());
        } else {
          redisAppendCommand(c, "SET %b %b", k.data(), k.size(), v.data(), v.size());
        }
      }
      for (auto const i : asked) {
        void* answer = nullptr;
        redisGetReply(c, &answer);
        reply const r(static_cast<redisReply*>(answer));
        judge(meter, what.op, r.get(), i);
      }
    }
    return meter.finish();
  }

 private:
  context connection_;
};

}  // namespace

void add_hiredis(peer_list& peers, int port) {
  peers.push_back(std::make_unique<blocking>(port));
  peers.push_back(std::make_unique<pipelined>(port));
}

void fill(int port) {
  auto const c = connect(port);
  for (std::size_t i = 0; i < key_count; ++i) {
    auto const& k = key(i);
    auto const& v = value(i);
    reply const r(
        static_cast<redisReply*>(redisCommand(c.get(), "SET %b %b", k.data(), k.size(), v.data(), v.size())));
    if (!r || r->type != REDIS_REPLY_STATUS) throw std::runtime_error("the server did not take the keys");
  }
}

}  // namespace bench
