// SPDX-License-Identifier: BSL-1.0
//
// The driver: performs on a transport what the connection core asks for, and turns completions into its next
// inputs. The only loop that performs actions. Runs on a strand of the client's executor; the transport is a
// template parameter, so that the same loop runs over sockets and, in virtual time, over a simulated network.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <redoubt/async/clock.hpp>
#include <redoubt/async/direct_executor.hpp>
#include <redoubt/core/block_cache.hpp>
#include <redoubt/net/connection_core.hpp>
#include <redoubt/net/fork_count.hpp>
#include <redoubt/net/late_executor.hpp>

namespace redoubt::detail {

/// A connection as the client sees it. Any thread may call.
class connection {
 public:
  /// Called on the client's executor.
  using close_handler = std::function<void()>;
  /// Called on the client's executor.
  using pending_handler = std::function<void(std::vector<pending_info>)>;

  virtual ~connection() = default;
  virtual void submit(pending_call* call) = 0;
  virtual void cancel(std::uint64_t key) = 0;
  virtual void close(deadline by, close_handler done) = 0;
  virtual void list_pending(pending_handler done) = 0;
  /// This process is a child that was forked, and its context is not running: lets go of the socket without a
  /// word to the peer, and ends the child's copies of the calls under way.
  virtual void leave_to_parent() = 0;
  [[nodiscard]] virtual connection_snapshot snapshot() const = 0;
  /// The context is being destroyed, and no thread runs it: frees every call, without completing it.
  virtual void abandon() noexcept = 0;
};

/// A fresh seed, from the system's entropy.
[[nodiscard]] std::uint64_t connection_seed();

/// Completes every call of the list on its own executor; a handler that throws does not take the others with
/// it.
void deliver_all(asio::any_io_executor const& executor, call_list calls);

/// True once for each list, while its last call completes on this thread: what that handler starts first is
/// sent in the same turn, because nothing is left that could be sent together with it. So one call after the
/// other costs one turn less.
[[nodiscard]] bool take_turn() noexcept;

/// Gathers what one connection hands over on this thread while this exists, so that it is delivered by
/// whoever made this, without another turn of the loop. They nest: a handler may run the loop.
class harvest {
 public:
  explicit harvest(connection const& owner) noexcept;
  ~harvest();
  harvest(harvest const&) = delete;
  harvest& operator=(harvest const&) = delete;

  /// Ends it and gives away what was gathered.
  [[nodiscard]] call_list take() noexcept;
  /// True when the calls were taken over by one that gathers for this connection on this thread.
  [[nodiscard]] static bool add(connection const& owner, call_list& calls) noexcept;

 private:
  connection const* owner_;
  harvest* outer_;
  call_list calls_;
};

/// See the head of this file. `Transport` offers: a constructor (strand, client_options const&); a type
/// `addresses`; async_resolve(void(errc, addresses)); adopt(addresses), which keeps them;
/// async_connect(time_point, void(errc)), to any of them; in both `errc::unspecified` is success;
/// async_read_some(buffer, void(error_code, std::size_t)); async_write_some(buffer, same); close(). It may
/// offer write_now(buffer, error_code&), which writes what can be written without waiting and says how much
/// that was; async_secure(void(errc, std::string_view)), the TLS handshake, with a note when it fails; and
/// explain(error_code), which gives `connection_core::on_broken` the reason why a read or write failed.
template <class Transport>
class basic_connection final : public connection,
                               private link_port,
                               public std::enable_shared_from_this<basic_connection<Transport>> {
 public:
  /// What follows `seed` is passed on to the transport.
  template <class... More>
  basic_connection(asio::any_io_executor executor, client_options const& options,
                   std::shared_ptr<load_gate> gate, std::uint64_t seed, More const&... more)
      : executor_(executor),
        strand_(direct_executor(executor)),
        timer_(strand_),
        credentials_(options.credentials),
        transport_(strand_, options, more...),
        core_(options, *this, std::move(gate), seed) {}

  void submit(pending_call* call) override {
    if (!core_.submit(call)) return;
    auto wake = [self = this->shared_from_this()] {
      self->core_.on_wake();
      self->after_input();
    };
    if (take_turn()) {
      asio::dispatch(strand_, std::move(wake));
    } else {
      asio::post(strand_, std::move(wake));
    }
  }

  void cancel(std::uint64_t key) override {
    input([key](core& c) { c.cancel(key); });
  }

  void close(deadline by, close_handler done) override {
    asio::post(strand_, [self = this->shared_from_this(), by, d = std::move(done)]() mutable {
      if (d) self->closers_.push_back(std::move(d));
      self->core_.close(by);
      self->after_input();
    });
  }

  void list_pending(pending_handler done) override {
    asio::post(strand_, [self = this->shared_from_this(), d = std::move(done)]() mutable {
      asio::post(self->executor_,
                 [d2 = std::move(d), list = self->core_.pending()]() mutable { d2(std::move(list)); });
    });
  }

  void leave_to_parent() override {
    transport_.close();
    core_.close(deadline(time_point::min()));
    after_input();
  }

  [[nodiscard]] connection_snapshot snapshot() const override { return core_.snapshot(); }

  void abandon() noexcept override { core_.abandon(); }

 private:
  using core = connection_core;

  template <class Input>
  void input(Input what) {
    asio::post(strand_, [self = this->shared_from_this(), what] {
      what(self->core_);
      self->after_input();
    });
  }

  void after_input() {
    if (auto const epoch = std::exchange(failed_write_, std::nullopt)) core_.on_broken(*epoch);
    if (!core_.closed() || closers_.empty()) return;
    for (auto& done : std::exchange(closers_, {})) asio::post(executor_, std::move(done));
  }

  // --- link_port ---
  [[nodiscard]] time_point now() const noexcept override { return timer_.now(); }

  void resolve(std::uint64_t epoch) override {
    if (fork_count() != born_) {
      return input([epoch](core& c) { c.on_attempt_failed(epoch, errc::forked); });
    }
    // Weak: a look-up cannot be cancelled, and one that hangs must not keep a closed connection alive.
    transport_.async_resolve(
        [weak = this->weak_from_this(), epoch](errc code, typename Transport::addresses found) {
          auto const self = weak.lock();
          if (!self) return;
          if (code == errc::unspecified) {
            self->transport_.adopt(std::move(found));
            self->core_.on_resolved(epoch);
          } else {
            self->core_.on_attempt_failed(epoch, code);
          }
          self->after_input();
        });
  }

  void connect(std::uint64_t epoch, time_point until) override {
    transport_.async_connect(until, [self = this->shared_from_this(), epoch](errc code) {
      if (code == errc::unspecified) {
        self->core_.on_connected(epoch);
      } else {
        self->core_.on_attempt_failed(epoch, code);
      }
      self->after_input();
    });
  }

  void secure(std::uint64_t epoch) override {
    auto done = [self = this->shared_from_this(), epoch](errc code, std::string_view note) {
      if (code == errc::unspecified) {
        self->core_.on_secured(epoch);
      } else {
        self->core_.on_attempt_failed(epoch, code, note);
      }
      self->after_input();
    };
    if constexpr (requires { transport_.async_secure(done); }) {
      transport_.async_secure(std::move(done));
    } else {  // a simulated network has nothing to hide
      asio::post(strand_, [d = std::move(done)] { d(errc::unspecified, {}); });
    }
  }

  void ask_credentials(std::uint64_t epoch) override {
    // Weak, and on its way back through the context: an answer may come when nothing is left of either.
    auto reply = once_reply(std::optional<credentials>{},
                            [where = late_executor(strand_), weak = this->weak_from_this(),
                             epoch](std::optional<credentials> who) {
                              where.post([weak, epoch, w = std::move(who)] {
                                auto const self = weak.lock();
                                if (!self) return;
                                self->core_.on_credentials(epoch, w);
                                self->after_input();
                              });
                            });
    try {
      credentials_->get(std::move(reply));
    } catch (...) {  // nobody holds the reply any more, so it has been given
    }
  }

  void broken(std::uint64_t epoch, boost::system::error_code const& error) {
    if constexpr (requires { transport_.explain(error); }) {
      auto const [code, note] = transport_.explain(error);
      core_.on_broken(epoch, code, note);
    } else {
      core_.on_broken(epoch);
    }
  }

  void read(std::uint64_t epoch) override {
    auto done = [self = this->shared_from_this(), epoch](boost::system::error_code error, std::size_t n) {
      harvest ended(*self);
      asio::dispatch(self->strand_, [self, epoch, error, n] {
        if (error) {
          self->broken(epoch, error);
        } else {
          self->core_.on_read(epoch, {self->input_.data(), n});
        }
        self->after_input();
      });
      // Behind the strand, so a handler that takes its time does not hold the connection up.
      if (auto calls = ended.take(); !calls.empty()) deliver_all(self->executor_, std::move(calls));
    };
    // Memory of its own for the operation: Asio keeps two blocks for each thread, which are wanted for the
    // turn that follows.
    transport_.async_read_some(
        asio::buffer(input_.data(), core_.read_size()),
        asio::bind_executor(strand_.get_inner_executor(),
                            asio::bind_allocator(block_allocator<void>(), std::move(done))));
  }

  std::size_t write(std::uint64_t epoch, std::string_view bytes) override {
    if (fork_count() != born_) {  // for programs whose context was not told of the fork
      failed_write_ = epoch;
      return 0;
    }
    if constexpr (requires(boost::system::error_code& e) { transport_.write_now(asio::const_buffer(), e); }) {
      // Most writes fit into the socket's buffer.
      boost::system::error_code error;
      auto const n = transport_.write_now(asio::buffer(bytes.data(), bytes.size()), error);
      if (error) failed_write_ = epoch;
      if (n > 0 || error) return n;
    }
    transport_.async_write_some(
        asio::buffer(bytes.data(), bytes.size()),
        [self = this->shared_from_this(), epoch](boost::system::error_code error, std::size_t n) {
          if (error) {
            self->broken(epoch, error);
          } else {
            self->core_.on_written(epoch, n);
          }
          self->after_input();
        });
    return 0;
  }

  void drop() noexcept override { transport_.close(); }

  void arm(time_point when) override {
    timer_.async_wait_until(when, [self = this->shared_from_this()](boost::system::error_code error) {
      if (error) return;
      self->core_.on_timer();
      self->after_input();
    });
  }

  void disarm() noexcept override { timer_.cancel(); }

  void hand_over(call_list done) override {
    if (harvest::add(*this, done)) return;
    asio::post(executor_, [executor = executor_, calls = std::move(done)]() mutable {
      deliver_all(executor, std::move(calls));
    });
  }

  std::uint32_t const born_ = fork_count();
  asio::any_io_executor executor_;
  asio::strand<direct_executor> strand_;
  timer timer_;
  std::shared_ptr<credentials_provider> credentials_;
  Transport transport_;
  std::array<char, core::most_read> input_;
  std::optional<std::uint64_t> failed_write_;  // its epoch; the core takes no input while it is in `write()`
  std::vector<close_handler> closers_;
  connection_core core_;
};

/// Makes the connections of a client over TLS. Throws `std::invalid_argument` when a certificate or key
/// cannot be used.
using tls_connection_maker = std::vector<std::shared_ptr<connection>> (*)(
    asio::any_io_executor const& executor, client_options const& options,
    std::shared_ptr<load_gate> const& gate);

/// How connections over TLS are made, from now on, in the whole program. Thread-safe.
void set_tls_connection_maker(tls_connection_maker maker) noexcept;

/// Makes connections: a service of the execution context. The base class makes real ones (TCP, TLS and unix
/// sockets); a `testing::world` installs one that makes simulated ones, so the same client runs in both.
class connection_factory : public asio::execution_context::service {
 public:
  static asio::execution_context::id id;
  explicit connection_factory(asio::execution_context& context) : asio::execution_context::service(context) {}

  /// `options.connections` of them. Throws `std::invalid_argument` when TLS is asked for and cannot be had.
  [[nodiscard]] virtual std::vector<std::shared_ptr<connection>> make(asio::any_io_executor const& executor,
                                                                      client_options const& options,
                                                                      std::shared_ptr<load_gate> const& gate);
  [[nodiscard]] static connection_factory& of(asio::any_io_executor const& executor);

  /// From now on these learn when the context's process was forked, and when the context ends: then it frees
  /// their calls, because a handler may own the client, and with it the connection that the handler waits in.
  /// Thread-safe.
  void remember(std::vector<std::shared_ptr<connection>> const& made);

 protected:
  void shutdown() override;

 private:
  void notify_fork(asio::execution_context::fork_event event) override;

  std::mutex mutex_;
  std::vector<std::weak_ptr<connection>> made_;
};

}  // namespace redoubt::detail
