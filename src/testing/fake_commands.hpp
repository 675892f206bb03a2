// SPDX-License-Identifier: BSL-1.0
//
// The commands of the fake server by family; fake_table.cpp lists them with their properties.
#pragma once

#include "fake_core.hpp"

namespace redoubt::testing::detail::commands {

// fake_strings.cpp
void append(call&);
void decr(call&);
void decrby(call&);
void get(call&);
void getdel(call&);
void getex(call&);
void getrange(call&);
void getset(call&);
void incr(call&);
void incrby(call&);
void incrbyfloat(call&);
void mget(call&);
void mset(call&);
void msetnx(call&);
void psetex(call&);
void set(call&);
void setex(call&);
void setnx(call&);
void strlen(call&);

// fake_keys.cpp
void dbsize(call&);
void del(call&);
void exists(call&);
void expire(call&);
void expireat(call&);
void expiretime(call&);
void flushall(call&);
void flushdb(call&);
void keys(call&);
void persist(call&);
void pexpire(call&);
void pexpireat(call&);
void pexpiretime(call&);
void pttl(call&);
void randomkey(call&);
void rename(call&);
void scan(call&);
void ttl(call&);
void type(call&);

// fake_sorted_sets.cpp
void zadd(call&);
void zcard(call&);
void zincrby(call&);
void zmscore(call&);
void zpopmax(call&);
void zpopmin(call&);
void zrank(call&);
void zrem(call&);
void zrevrank(call&);
void zscore(call&);

// fake_sorted_set_ranges.cpp
void zcount(call&);
void zrange(call&);
void zrangebyscore(call&);
void zremrangebyrank(call&);
void zremrangebyscore(call&);
void zrevrange(call&);
void zrevrangebyscore(call&);

// fake_collections.cpp
void hdel(call&);
void hexists(call&);
void hget(call&);
void hgetall(call&);
void hincrby(call&);
void hlen(call&);
void hmget(call&);
void hset(call&);
void hsetnx(call&);
void llen(call&);
void lpop(call&);
void lpush(call&);
void lrange(call&);
void ltrim(call&);
void rpop(call&);
void rpush(call&);

// fake_connection.cpp
void auth(call&);
void client_getname(call&);
void client_id(call&);
void client_pause(call&);
void client_setname(call&);
void client_unpause(call&);
void echo(call&);
void hello(call&);
void ping(call&);
void quit(call&);
void select(call&);

// fake_admin.cpp
void config_get(call&);
void config_set(call&);
void info(call&);
void replicaof(call&);
void role(call&);
void time(call&);

// fake_transactions.cpp
void discard(call&);
void exec(call&);
void multi(call&);
void unwatch(call&);
void watch(call&);

// fake_scripts.cpp
void eval(call&);
void evalsha(call&);
void script_exists(call&);
void script_flush(call&);
void script_kill(call&);
void script_load(call&);

}  // namespace redoubt::testing::detail::commands
