// SPDX-License-Identifier: BSL-1.0
#include <redoubt/net/connection_core.hpp>

#include <algorithm>

#include <redoubt/resp/decode.hpp>

namespace redoubt::detail {
namespace {

// Enough to keep the server busy between two turns, small enough that a call behind it can still leave the
// queue unsent.
constexpr std::size_t batch_bytes = 64 * 1024;

constexpr std::string_view ping_command = "*1\r\n$4\r\nPING\r\n";

// A written command of this size is freed with its call, when its owner's next command can use the memory at
// once.
constexpr std::size_t small_command = 256;

call_queue_options queue_options(client_options const& o) {
  return {o.timeouts.connect, o.timeouts.attempt, o.reconnect.stall_limit, o.bounds.late_replies};
}

lifecycle_options life_options(client_options const& o) {
  return {o.timeouts.connect, o.reconnect.stall_limit, o.reconnect.backoff, o.reconnect.refused_pause,
          o.tls.enabled};
}

reader_options reading_options(client_options const& o) {
  return {o.bounds.reply_bytes, o.bounds.array_elements, o.bounds.depth};
}

std::shared_ptr<failure_detail const> place_of(client_options const& o) {
  auto out = std::make_shared<failure_detail>();
  out->endpoint = o.endpoint_text();
  return out;
}

bool is_readonly(reply const& r) noexcept {
  return r.is_error() && r.as_error().code == server_errc::readonly;
}

}  // namespace

connection_core::connection_core(client_options const& options, link_port& port,
                                 std::shared_ptr<load_gate> gate, std::uint64_t seed)
    : options_(options),
      port_(port),
      gate_(std::move(gate)),
      place_(place_of(options)),
      tells_calls_(options.events && options.events->wants_calls()),
      queue_(queue_options(options)),
      life_(life_options(options), seed),
      greeting_(options.login),
      reader_(reading_options(options)) {}

void connection_core::on_wake() {
  auto const t = port_.now();
  take_inbox(t);
  settle(t);
}

void connection_core::take_inbox(time_point t) {
  auto fresh = inbox_.take();
  while (auto* call = fresh.pop()) admit(call, t);
}

void connection_core::admit(pending_call* call, time_point t) {
  ++counts_.started;
  if (closing_ || closed()) {
    return finish(call, failure{.code = errc::closed, .effect = effect::none, .rejected = true}, t);
  }
  if (call->by.passed(t)) {
    return finish(call, failure{.code = errc::deadline_exceeded, .effect = effect::none}, t);
  }
  if (auto refusal = life_.rejection(t)) return finish(call, std::move(*refusal), t);
  call->id = queue_.submit({tag_of(call), call->wire().size(), call->replies, call->by, call->own_budget}, t);
  if (call->cancel_key != 0) cancellable_.emplace(call->cancel_key, call);
  if (life_.state() != link_state::ready) run(life_.demand(t), t);
}

void connection_core::cancel(std::uint64_t key) {
  auto const t = port_.now();
  take_inbox(t);
  if (auto const found = cancellable_.find(key); found != cancellable_.end()) {
    auto* call = found->second;
    if (auto const e = queue_.cancel(call->id, life_.waiting_phase())) {
      finish(call, failure{.code = errc::cancelled, .effect = e->effect, .phase = e->phase}, t, e->written());
    }
  }
  settle(t);
}

void connection_core::greet(login_options const& login) {
  reader_ = reader(reading_options(options_));
  greeting_ = handshake(login);
  out_ = greeting_.bytes();
  port_.read(life_.epoch());
  send(port_.now());
}

// Writes `out_`, of which nothing is written yet.
void connection_core::send(time_point t) {
  out_done_ = 0;
  writing_ = true;
  if (auto const n = port_.write(life_.epoch(), out_); n > 0) wrote(n, t);
}

void connection_core::wrote(std::size_t bytes, time_point t) {
  for (auto n = bytes; n > 0;) {
    out_done_ += n;
    if (life_.state() == link_state::ready) queue_.on_written(n, t);
    writing_ = out_done_ < out_.size();
    if (!writing_ || queue_.half_written()) return;
    n = port_.write(life_.epoch(), std::string_view(out_).substr(out_done_));
  }
}

void connection_core::on_written(std::uint64_t epoch, std::size_t bytes) {
  if (epoch != life_.epoch()) return;
  auto const t = port_.now();
  wrote(bytes, t);
  settle(t);
}

void connection_core::on_read(std::uint64_t epoch, std::string_view bytes) {
  if (epoch != life_.epoch()) return;
  auto const t = port_.now();
  auto const size = bytes.size();
  std::size_t replies = 0;
  queue_.on_bytes(t);
  while (!bytes.empty() && epoch == life_.epoch() && reader_.error() == errc::unspecified) {
    auto const piece = bytes.substr(0, reader_.good_piece());
    bytes.remove_prefix(piece.size());
    reader_.feed(piece);
    while (epoch == life_.epoch()) {
      auto r = reader_.next();
      if (!r) break;
      ++replies;
      on_reply(std::move(*r), t);
    }
  }
  if (epoch == life_.epoch() && reader_.error() != errc::unspecified) {
    lose(reader_.error(), reader_.error_text(), t);
  }
  read_size_ = least_read;
  if (size >= (replies + 1) * large_reply) read_size_ = replies > 0 ? 2 * least_read : most_read;
  settle(t);
  // Last: what the next read finds at once is handed over behind what ended here.
  if (epoch == life_.epoch() && !closed()) port_.read(epoch);
}

void connection_core::on_reply(reply&& r, time_point t) {
  if (life_.state() == link_state::handshaking) {
    auto step = greeting_.on_reply(r);
    switch (step.what) {
      case handshake::outcome::kind::pending: return;
      case handshake::outcome::kind::done: return run(life_.on_greeted(life_.epoch(), t), t);
      case handshake::outcome::kind::refused:
        return run(life_.on_refused(life_.epoch(), placed(std::move(step.why), {}), t), t);
    }
  }
  auto const match = queue_.on_reply();
  switch (match.what) {
    case matched_reply::kind::unexpected:
      return lose(errc::protocol_error, "a reply that nobody asked for", t);
    case matched_reply::kind::own:
    case matched_reply::kind::discarded: return;
    case matched_reply::kind::answer: break;
  }
  if (is_readonly(r) && !retiring_) retiring_ = life_.should_retire(t);
  life_.on_answer();
  auto* call = call_of(match.tag);
  if (call->replies == 1) {
    call->value = std::move(r);
  } else {
    call->values.push_back(std::move(r));
  }
  if (match.last) finish_answered(call, match.since, t);
}

void connection_core::on_broken(std::uint64_t epoch, errc code, std::string_view note) {
  if (epoch != life_.epoch()) return;
  auto const t = port_.now();
  if (code == errc::tls_untrusted && life_.state() == link_state::handshaking) {
    run(life_.on_refused(epoch, placed({.code = code, .effect = effect::none}, note), t), t);
  } else {
    lose(errc::connection_lost, std::string(note), t);
  }
  settle(t);
}

void connection_core::lose(errc code, std::string note, time_point t) {
  auto why = placed({.code = code, .effect = effect::none}, note);
  tell_lost(why);
  if (code == errc::reply_too_large)
    life_.on_answer();  // the server is well, and its next connection is welcome
  auto const actions = life_.on_lost(life_.epoch(), why, queue_.has_waiting(), t);
  // Only the call whose reply was being read is at fault for its size; the others merely lost their
  // connection.
  auto const culprit = queue_.next_to_answer();
  ended_.clear();
  queue_.on_lost(ended_);
  if (code == errc::reply_too_large) {
    if (!ended_.empty() && culprit == ended_.front().tag) {
      finish(call_of(*culprit),
             failure{.code = code, .effect = effect::unknown, .phase = phase::read, .detail = why.detail}, t,
             ended_.front().written());
      ended_.erase(ended_.begin());
    }
    code = errc::connection_lost;
  }
  end_all(ended_, code, note, t);
  run(actions, t);
}

void connection_core::expire(time_point t) {
  ended_.clear();
  queue_.on_time(t, life_.waiting_phase(), ended_);
  end_all(ended_, errc::deadline_exceeded, {}, t);
}

void connection_core::on_timer() {
  auto const t = port_.now();
  armed_.reset();
  take_inbox(t);
  run(life_.on_time(queue_.has_waiting(), t), t);
  expire(t);
  if (life_.state() == link_state::ready && queue_.stalled(t)) lose(errc::connection_stalled, {}, t);
  settle(t);
}

void connection_core::close(deadline by) {
  auto const t = port_.now();
  take_inbox(t);
  closing_ = true;
  close_by_ = earlier(close_by_, by);
  settle(t);
}

void connection_core::run(link_actions const& actions, time_point t) {
  setup_.enter(life_.waiting_phase(), t);
  for (auto const& action : actions) {
    switch (action.what) {
      case link_action::kind::drop:
        tell_lost(placed(life_.cause(), {}));
        port_.drop();
        out_.clear();
        writing_ = retiring_ = false;
        break;
      case link_action::kind::resolve:
        announced_ = true;
        tell(event_kind::connecting);
        port_.resolve(action.epoch);
        break;
      case link_action::kind::connect: port_.connect(action.epoch, action.until); break;
      case link_action::kind::secure: port_.secure(action.epoch); break;
      case link_action::kind::greet:
        if (options_.credentials) {
          port_.ask_credentials(action.epoch);
        } else {
          greet(options_.login);
        }
        break;
      case link_action::kind::open:
        tell(event_kind::ready);
        queue_.on_ready(t);
        break;
      case link_action::kind::fail_waiting: {
        auto why = life_.cause();
        std::vector<ended_call> waiting;
        queue_.end_waiting(why.phase, waiting);
        for (auto const& e : waiting) finish(call_of(e.tag), why, t);
        break;
      }
    }
  }
}

void connection_core::flush(time_point t) {
  while (life_.state() == link_state::ready && !writing_ && !retiring_) {
    batch_.clear();
    queue_.take_batch(batch_bytes, t, batch_);
    if (batch_.empty()) return ping(t);
    out_.clear();
    std::size_t charged = 0;
    for (auto const tag : batch_) {
      auto* call = call_of(tag);
      out_.append(call->wire());
      call->staged = t;
      if (tells_calls_) tell_sent(*call);
      charged += std::exchange(call->charged_bytes, 0);
      if (call->bytes.allocated() > small_command) call->bytes.reset();
    }
    gate_->unqueue(charged);
    send(t);
    if (!queue_.has_waiting()) return;
    t = port_.now();
  }
}

std::optional<time_point> connection_core::ping_due() const noexcept {
  if (life_.state() != link_state::ready || writing_ || retiring_ || closing_) return std::nullopt;
  auto const since = queue_.idle_since();
  if (!since) return std::nullopt;
  return saturating_add(*since, options_.reconnect.ping_interval);
}

void connection_core::ping(time_point t) {
  auto const due = ping_due();
  if (!due || t < *due) return;
  out_ = ping_command;
  queue_.stage_own(out_.size(), t);
  send(t);
}

void connection_core::settle(time_point t) {
  if (queue_.half_written()) lose(errc::connection_lost, "given up with a command written in part", t);
  if (queue_.crowded()) lose(errc::connection_stalled, "too many late replies are owed", t);
  if (retiring_ && queue_.settled()) {
    tell_lost(
        placed({.code = errc::server_error, .server = server_errc::readonly, .effect = effect::none}, {}),
        event_kind::retired);
    run(life_.retire(queue_.has_waiting(), t), t);
    ended_.clear();
    queue_.on_lost(ended_);
  }
  if (closing_ && !closed() && (queue_.idle() || close_by_.passed(t))) {
    auto const actions = life_.close();
    ended_.clear();
    queue_.on_lost(ended_);
    end_all(ended_, errc::closed, {}, t);
    run(actions, t);
  }
  flush(t);
  auto wanted = life_.next_wakeup();
  auto const also = [&wanted](time_point when) { wanted = wanted ? std::min(*wanted, when) : when; };
  if (auto const next = queue_.next_wakeup()) also(*next);
  if (auto const next = ping_due()) also(*next);
  if (closing_ && !closed() && close_by_.is_set()) also(close_by_.at());
  if (!wanted) {
    // A ready connection keeps its timer: the next call will want it.
    if (life_.state() != link_state::ready && std::exchange(armed_, std::nullopt)) port_.disarm();
  } else if (!armed_ || *wanted < *armed_) {
    // A timer that is too early is left alone: when it fires nothing is due and it is armed anew. So a stream
    // of calls that are answered in time costs one timer per limit, not one per call.
    armed_ = *wanted;
    port_.arm(*wanted);
  }
  publish();
  if (done_.empty()) return;
  gate_->leave(std::exchange(leaving_, 0));
  port_.hand_over(std::move(done_));
}

}  // namespace redoubt::detail
