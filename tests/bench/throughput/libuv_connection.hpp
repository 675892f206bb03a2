// SPDX-License-Identifier: BSL-1.0
//
// One connection of hiredis' asynchronous interface on a loop of its own. Only where libuv is installed.
#pragma once

#include <stdexcept>

#include <uv.h>

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <hiredis/adapters/libuv.h>

namespace bench {

/// Connected when it is made. `connection_->data` is this object.
class libuv_connection {
 public:
  libuv_connection(libuv_connection const&) = delete;
  libuv_connection& operator=(libuv_connection const&) = delete;

 protected:
  explicit libuv_connection(int port) {
    uv_loop_init(&loop_);
    connection_ = redisAsyncConnect("127.0.0.1", port);
    if (connection_ == nullptr || connection_->err != 0) throw std::runtime_error("hiredis: cannot connect");
    connection_->data = this;
    redisLibuvAttach(connection_, &loop_);
    redisAsyncSetConnectCallback(connection_, [](redisAsyncContext const* c, int status) {
      static_cast<libuv_connection*>(c->data)->connected_ = status == REDIS_OK;
      uv_stop(&static_cast<libuv_connection*>(c->data)->loop_);
    });
    redisAsyncSetDisconnectCallback(connection_, [](redisAsyncContext const* c, int) {
      static_cast<libuv_connection*>(c->data)->connection_ = nullptr;
    });
    uv_run(&loop_, UV_RUN_DEFAULT);
    if (!connected_) throw std::runtime_error("hiredis: cannot connect");
  }
  ~libuv_connection() {
    if (connection_ != nullptr) redisAsyncFree(connection_);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }

  uv_loop_t loop_{};
  redisAsyncContext* connection_ = nullptr;  ///< Null after it was lost.

 private:
  bool connected_ = false;
};

}  // namespace bench
