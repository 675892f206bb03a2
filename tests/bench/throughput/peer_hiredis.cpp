// SPDX-License-Identifier: BSL-1.0
//
// hiredis used the blocking way: one command at a time on a connection per thread, and batches on one
// connection.
#include <atomic>
#include <mutex>
#include <thread>

#include <hiredis/hiredis.h>

#include "peer.hpp"
#include "peer_hiredis.hpp"

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

void judge(run_meter& meter, redisReply const* r, std::size_t i) {
  if (r == nullptr) throw std::runtime_error("hiredis: the connection was lost");
  judge_hiredis(meter, *r, i);
}

class blocking final : public peer {
 public:
  explicit blocking(int port) : port_(port) {}
  [[nodiscard]] std::string_view name() const override { return "hiredis-blocking"; }
  [[nodiscard]] std::string_view about() const override {
    return "redisCommand; a thread and a connection for each command in flight; no time limit";
  }
  /// Hundreds of threads measure the scheduler, not the client.
  [[nodiscard]] bool takes(cell const& what) const override {
    return what.in_flight <= 8 && what.of->what != shape::batch;
  }

  sample run(cell const& what, double seconds) override {
    while (connections_.size() < what.in_flight) connections_.push_back(connect(port_));
    if (what.in_flight == 1) {
      run_meter meter(what, seconds);
      work(*connections_[0], meter);
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
          work(*connections_[i], meter);
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
  static void work(redisContext& c, run_meter& meter) {
    auto const ask = [&](std::size_t i) {
      auto const& k = meter.key(i);
      auto const& v = meter.value(i);
      switch (meter.of().what) {
        case shape::set: return redisCommand(&c, "SET %b %b", k.data(), k.size(), v.data(), v.size());
        case shape::range: return redisCommand(&c, "LRANGE %b 0 -1", k.data(), k.size());
        default: return redisCommand(&c, "GET %b", k.data(), k.size());
      }
    };
    while (!meter.over()) {
      auto const i = meter.next_key();
      meter.call_begins();
      reply const r(static_cast<redisReply*>(ask(i)));
      judge(meter, r.get(), i);
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
  [[nodiscard]] bool takes(cell const& what) const override {
    return what.in_flight > 1 || what.of->what == shape::batch;
  }

  sample run(cell const& what, double seconds) override {
    std::vector<std::size_t> asked(what.in_flight * (what.of->what == shape::batch ? batch_size : 1));
    run_meter meter(what, seconds);
    auto* c = connection_.get();
    for (bool last = false; !last;) {
      meter.call_begins();
      for (auto& i : asked) {
        last = meter.over() || last;
        i = meter.next_key();
        append(c, meter, i);
      }
      for (auto const i : asked) {
        void* answer = nullptr;
        redisGetReply(c, &answer);
        reply const r(static_cast<redisReply*>(answer));
        judge(meter, r.get(), i);
      }
      meter.call_ends();
    }
    return meter.finish();
  }

 private:
  static void append(redisContext* c, run_meter const& meter, std::size_t i) {
    auto const& k = meter.key(i);
    auto const& v = meter.value(i);
    switch (meter.of().what) {
      case shape::set: redisAppendCommand(c, "SET %b %b", k.data(), k.size(), v.data(), v.size()); break;
      case shape::range: redisAppendCommand(c, "LRANGE %b 0 -1", k.data(), k.size()); break;
      default: redisAppendCommand(c, "GET %b", k.data(), k.size());
    }
  }

  context connection_;
};

}  // namespace

void judge_hiredis(run_meter& meter, redisReply const& r, std::size_t i) {
  auto const text = [](redisReply const& one) { return std::string_view(one.str, one.len); };
  auto const expected = meter.of().what;
  if (expected == shape::set && r.type == REDIS_REPLY_STATUS) {
    meter.acknowledged(text(r));
  } else if (expected == shape::range && r.type == REDIS_REPLY_ARRAY) {
    meter.answered_list(r.elements, i, [&](std::size_t j) {
      auto const& one = *r.element[j];
      return one.type == REDIS_REPLY_STRING ? text(one) : std::string_view();
    });
  } else if ((expected == shape::get || expected == shape::batch) && r.type == REDIS_REPLY_STRING) {
    meter.answered(text(r), i);
  } else {
    meter.answered_otherwise();
  }
}

void add_hiredis(peer_list& peers, int port) {
  peers.push_back(std::make_unique<blocking>(port));
  peers.push_back(std::make_unique<pipelined>(port));
}

void fill(load const& of, int port) {
  auto const c = connect(port);
  auto const& data = contents_of(of);
  auto const send = [&](char const* name, std::string const& k, std::string const& v) {
    reply const r(static_cast<redisReply*>(
        redisCommand(c.get(), "%s %b %b", name, k.data(), k.size(), v.data(), v.size())));
    if (!r || r->type == REDIS_REPLY_ERROR) throw std::runtime_error("the server did not take the keys");
  };
  for (std::size_t i = 0; i < of.keys; ++i) {
    if (of.elements == 0) send("SET", data.keys[i], data.values[i]);
    for (std::size_t j = 0; j < of.elements; ++j)
      send("RPUSH", data.keys[i], data.values[i * of.elements + j]);
  }
}

}  // namespace bench
