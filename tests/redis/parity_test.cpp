// SPDX-License-Identifier: BSL-1.0
//
// The fake server must answer as the real one does: one table of commands, byte for byte.
#include "parity.hpp"

namespace {

using redoubt::test_support::parity;

TEST(parity_commands, strings) {
  parity p;
  p.same_all({{"GET", "k"},
              {"SET", "k", "v"},
              {"get", "k"},
              {"SET", "k", "w", "NX"},
              {"SET", "k", "w", "XX"},
              {"SET", "none", "w", "XX"},
              {"SET", "k", "x", "GET"},
              {"SET", "none", "x", "GET", "XX"},
              {"SET", "k", "y", "NX", "GET"},
              {"SET", "n", "y", "NX", "GET", "PX", "100000"},
              {"SET", "n", "z", "NX", "GET", "PX", "100000"},
              {"SET", "k", "y", "NX", "XX"},
              {"SET", "k", "y", "EX"},
              {"SET", "k", "y", "EX", "0"},
              {"SET", "k", "y", "EX", "-1"},
              {"SET", "k", "y", "EX", "abc"},
              {"SET", "k", "y", "EX", "9223372036854775807"},
              {"SET", "k", "y", "PX", "0"},
              {"SET", "k", "y", "PX", "9223372036854775807"},
              {"SET", "k", "y", "PX", "9223372036854775808"},
              {"SET", "k", "y", "EX", "10", "PX", "10"},
              {"SET", "k", "y", "EX", "10", "KEEPTTL"},
              {"SET", "k", "y", "KEEPTTL", "EX", "10"},
              {"SET", "k", "y", "NX", "NX"},
              {"SET", "k", "y", "BAD"},
              {"SET", "k", "y", "PERSIST"},
              {"SET", "k", "y", "EX", "100"},
              {"TTL", "k"},
              {"SET", "k", "y", "KEEPTTL"},
              {"TTL", "k"},
              {"SET", "k", "y"},
              {"TTL", "k"},
              {"SET", "k", "y", "EXAT", "1"},
              {"GET", "k"},
              {"SET", "k", "y", "PXAT", "1"},
              {"EXISTS", "k"},
              {"SET", "k", "y", "EXAT", "99999999999"},
              {"PEXPIRETIME", "k"},
              {"EXPIRETIME", "k"},
              {"SETNX", "k", "a"},
              {"SETNX", "fresh", "a"},
              {"SETEX", "k", "0", "a"},
              {"SETEX", "k", "-5", "a"},
              {"SETEX", "k", "x", "a"},
              {"SETEX", "k", "100", "a"},
              {"PSETEX", "k", "0", "a"},
              {"PSETEX", "k", "100000", "a"},
              {"TTL", "k"},
              {"GETSET", "k", "b"},
              {"TTL", "k"},
              {"GETSET", "new", "b"},
              {"GETDEL", "new"},
              {"GETDEL", "new"},
              {"GETEX", "k", "EX", "100"},
              {"TTL", "k"},
              {"GETEX", "k", "PERSIST"},
              {"TTL", "k"},
              {"GETEX", "k", "NX"},
              {"GETEX", "k", "EX", "0"},
              {"GETEX", "k"},
              {"GETEX", "nokey", "EX", "100"},
              {"GETEX", "k", "EX", "10", "PERSIST"},
              {"MSET", "a", "1", "b", "2"},
              {"MSET", "a", "1", "b"},
              {"MGET", "a", "b", "c"},
              {"MSETNX", "c", "1", "a", "2"},
              {"MSETNX", "c", "1", "d", "2"},
              {"MSETNX", "c"},
              {"MSETNX", "c", "1", "d"},
              {"APPEND", "k", "tail"},
              {"APPEND", "app", "tail"},
              {"STRLEN", "k"},
              {"STRLEN", "nokey"},
              {"GETRANGE", "k", "0", "-1"},
              {"GETRANGE", "k", "1", "2"},
              {"GETRANGE", "k", "-3", "-1"},
              {"GETRANGE", "k", "-1", "-3"},
              {"GETRANGE", "k", "5", "2"},
              {"GETRANGE", "k", "0", "100"},
              {"GETRANGE", "k", "x", "100"},
              {"GETRANGE", "nokey", "0", "-1"},
              {"SET", "binary", std::string("a\0b\r\nc", 6)},
              {"GET", "binary"},
              {"SET", "", "empty key"},
              {"GET", ""},
              {"SET", "empty", ""},
              {"GET", "empty"}});
}

TEST(parity_commands, counters) {
  parity p;
  p.same_all({{"INCR", "c"},
              {"TTL", "c"},
              {"PTTL", "c"},
              {"PTTL", "none"},
              {"INCRBY", "c", "10"},
              {"INCRBY", "c", "x"},
              {"INCRBY", "c", "1.5"},
              {"INCRBY", "c", " 1"},
              {"INCRBY", "c", "+1"},
              {"INCRBY", "c", "01"},
              {"INCRBY", "c", "-0"},
              {"DECR", "c"},
              {"DECRBY", "c", "3"},
              {"DECRBY", "c", "-9223372036854775808"},
              {"SET", "c", "9223372036854775807"},
              {"INCR", "c"},
              {"SET", "c", "-9223372036854775808"},
              {"DECR", "c"},
              {"SET", "c", "abc"},
              {"INCR", "c"},
              {"SET", "c", "12 "},
              {"INCR", "c"},
              {"SET", "c", "0x10"},
              {"INCR", "c"},
              {"SET", "c", ""},
              {"INCR", "c"},
              {"SET", "f", "10.5"},
              {"INCRBYFLOAT", "f", "0.1"},
              {"INCRBYFLOAT", "f", "-10.6"},
              {"INCRBYFLOAT", "f", "1e5"},
              {"INCRBYFLOAT", "f", "1e300"},
              {"INCRBYFLOAT", "f", "inf"},
              {"INCRBYFLOAT", "f", "nan"},
              {"INCRBYFLOAT", "f", "abc"},
              {"INCRBYFLOAT", "new", "3.0"},
              {"INCRBYFLOAT", "new", "0.1"},
              {"INCRBYFLOAT", "new", "-3.1"},
              {"SET", "ex", "5", "EX", "100"},
              {"INCR", "ex"},
              {"TTL", "ex"},
              {"APPEND", "ex", "0"},
              {"TTL", "ex"}});
}

TEST(parity_commands, keys_and_expiry) {
  parity p;
  p.same_all({{"MSET", "a", "1", "b", "2", "c", "3"},
              {"DEL", "a", "a", "zz"},
              {"UNLINK", "b", "zz"},
              {"EXISTS", "c", "c", "zz"},
              {"TOUCH", "c", "zz"},
              {"TYPE", "c"},
              {"TYPE", "zz"},
              {"TTL", "c"},
              {"TTL", "zz"},
              {"EXPIRE", "c", "100"},
              {"TTL", "c"},
              {"EXPIRE", "c", "200", "NX"},
              {"EXPIRE", "c", "50", "GT"},
              {"EXPIRE", "c", "200", "GT"},
              {"EXPIRE", "c", "300", "LT"},
              {"EXPIRE", "c", "100", "LT"},
              {"EXPIRE", "c", "150", "XX"},
              {"EXPIRE", "c", "160", "xx", "gt"},
              {"EXPIRE", "c", "150", "NX", "XX"},
              {"EXPIRE", "c", "150", "GT", "LT"},
              {"EXPIRE", "c", "150", "BAD"},
              {"EXPIRE", "c", "x"},
              {"EXPIRE", "c", "9223372036854775807"},
              {"PEXPIRE", "c", "9223372036854775807"},
              {"EXPIRE", "c", "-9223372036854775808"},
              {"EXPIRE", "zz", "10"},
              {"PEXPIRE", "c", "100000"},
              {"PERSIST", "c"},
              {"PERSIST", "c"},
              {"PERSIST", "zz"},
              {"EXPIRE", "c", "10", "XX"},
              {"EXPIRE", "c", "10", "GT"},
              {"EXPIRE", "c", "10", "LT"},
              {"EXPIREAT", "c", "99999999999"},
              {"EXPIRETIME", "c"},
              {"PEXPIREAT", "c", "99999999999999"},
              {"PEXPIRETIME", "c"},
              {"PEXPIRETIME", "zz"},
              {"EXPIRE", "c", "0"},
              {"EXISTS", "c"},
              {"SET", "c", "1"},
              {"EXPIRE", "c", "-1"},
              {"EXISTS", "c"},
              {"SET", "d", "1", "EX", "100"},
              {"RENAME", "d", "e"},
              {"TTL", "e"},
              {"RENAME", "zz", "e"},
              {"KEYS", "*"},
              {"KEYS", "[d-f]"},
              {"KEYS", "[^e]"},
              {"KEYS", "\\e"},
              {"KEYS", "?"},
              {"KEYS", "??"},
              {"KEYS", "e*"},
              {"DBSIZE"},
              {"RANDOMKEY"},
              {"SCAN", "0"},
              {"SCAN", "0", "MATCH", "e*", "COUNT", "100", "TYPE", "string"},
              {"SCAN", "0", "TYPE", "list"},
              {"SCAN", "x"},
              {"SCAN", "0", "COUNT", "0"},
              {"SCAN", "0", "COUNT", "x"},
              {"SCAN", "0", "COUNT"},
              {"SCAN", "0", "BAD", "1"},
              {"SELECT", "1"},
              {"DBSIZE"},
              {"GET", "e"},
              {"SET", "other", "1"},
              {"FLUSHDB"},
              {"DBSIZE"},
              {"SELECT", "0"},
              {"DBSIZE"},
              {"SELECT", "16"},
              {"SELECT", "-1"},
              {"SELECT", "abc"},
              {"FLUSHALL", "BAD"},
              {"FLUSHALL", "ASYNC"},
              {"DBSIZE"},
              {"RANDOMKEY"},
              {"KEYS", "*"},
              {"SCAN", "0"}});
}

TEST(parity_commands, unknown_and_malformed) {
  parity p;
  p.same_all({{"NOPE"},
              {"NOPE", "a", "b"},
              {"nope", "with\r\nnewline"},
              {"NOPE", std::string(200, 'x'), "y"},
              {std::string(200, 'n')},
              {"GET"},
              {"GET", "a", "b"},
              {"SET", "a"},
              {"PING", "a", "b"},
              {"PING", "hello"},
              {"ping"},
              {"ECHO", "hi"},
              {"ECHO"},
              {"CLIENT"},
              {"CLIENT", "NOPE"},
              {"CLIENT", "SETINFO", "LIB-NAME", "x"},
              {"client", "setname"},
              {"CLIENT", "GETNAME"},
              {"CLIENT", "SETNAME", "me"},
              {"CLIENT", "GETNAME"},
              {"CLIENT", "SETNAME", "with space"},
              {"CLIENT", "SETNAME", ""},
              {"CLIENT", "GETNAME"},
              {"client|setname", "x"},
              {"CONFIG"},
              {"CONFIG", "SET", "nope", "1"},
              {"CONFIG", "SET", "maxmemory"},
              {"CONFIG", "SET", "maxmemory", "100mb", "timeout"},
              {"CONFIG", "GET", "nope"},
              {"CONFIG", "GET", "maxmemory"},
              {"CONFIG", "SET", "timeout", "0"},
              {"CLIENT", "PAUSE", "x"},
              {"CLIENT", "PAUSE", "-1"},
              {"CLIENT", "PAUSE", "1", "BAD"},
              {"CLIENT", "PAUSE", "1", "WRITE", "MORE"},
              {"CLIENT", "UNPAUSE"},
              {"SCRIPT"},
              {"SCRIPT", "NOPE"},
              {"REPLICAOF", "NO"},
              {"REPLICAOF", "NO", "ONE"},
              {"REPLICAOF", "localhost", "x"},
              {"AUTH", "x"},
              {"AUTH", "default", "anything"},
              {"AUTH", "nobody", "x"},
              {"AUTH", "a", "b", "c"},
              {"HELLO", "4"},
              {"HELLO", "1"},
              {"HELLO", "x"},
              {"HELLO", "2", "BAD"},
              {"HELLO", "2", "AUTH", "nobody", "x"},
              {"HELLO", "2", "SETNAME", "a b"}});
}

TEST(parity_commands, transactions) {
  parity p;
  auto const other = p.connect();
  p.same_all({{"EXEC"},
              {"DISCARD"},
              {"UNWATCH"},
              {"MULTI"},
              {"SET", "a", "1"},
              {"INCR", "a"},
              {"GET", "a"},
              {"EXEC"},
              {"MULTI"},
              {"EXEC"},
              {"MULTI"},
              {"SET", "a", "5"},
              {"DISCARD"},
              {"GET", "a"},
              {"MULTI"},
              {"NOPE"},
              {"SET", "a", "5"},
              {"EXEC"},
              {"GET", "a"},
              {"MULTI"},
              {"GET"},
              {"EXEC"},
              {"MULTI"},
              {"MULTI"},
              {"SET", "a", "6"},
              {"EXEC"},
              {"MULTI"},
              {"WATCH", "a"},
              {"EXEC"},
              {"MULTI"},
              {"LPUSH", "a", "x"},
              {"SET", "b", "2"},
              {"EXEC"},
              {"GET", "b"},
              {"MULTI"},
              {"EVAL", "return redis.call('incr', KEYS[1])", "1", "n"},
              {"EXEC"},
              {"MULTI"},
              {"SELECT", "1"},
              {"SET", "in1", "x"},
              {"EXEC"},
              {"GET", "in1"},
              {"SELECT", "0"},
              {"GET", "in1"}});
  p.same({"WATCH", "w"});
  p.same({"SET", "w", "changed"}, other);
  p.same_all({{"MULTI"}, {"SET", "w", "mine"}, {"EXEC"}, {"GET", "w"}});
  p.same({"WATCH", "w"});
  p.same({"SET", "unrelated", "x"}, other);
  p.same_all({{"MULTI"}, {"SET", "w", "mine"}, {"EXEC"}, {"GET", "w"}});
  p.same({"WATCH", "w"});
  p.same({"DEL", "w"}, other);
  p.same_all({{"UNWATCH"}, {"MULTI"}, {"SET", "w", "mine"}, {"EXEC"}, {"GET", "w"}});
  p.same({"WATCH", "missing"});
  p.same({"SET", "missing", "x"}, other);
  p.same({"DEL", "missing"}, other);
  p.same_all({{"MULTI"}, {"PING"}, {"EXEC"}});
  p.same({"WATCH", "w"});
  p.same({"FLUSHALL"}, other);
  p.same_all({{"MULTI"}, {"PING"}, {"EXEC"}});
}

TEST(parity_commands, protocol_errors) {
  parity p;
  auto const on_new = [&p](std::string const& bytes) {
    auto const c = p.connect();
    p.same_bytes(bytes, c);
    EXPECT_EQ(p.peer(c).wait_closed(std::chrono::milliseconds(200)), p.from_fake(c) == "<closed>") << bytes;
  };
  on_new("*1\r\n!4\r\nPING\r\n");
  on_new("*1\r\n$x\r\nPING\r\n");
  on_new("*1\r\n$-4\r\nPING\r\n");
  on_new("*x\r\n");
  on_new("*3000000000\r\n");
  on_new("*1\r\n$600000000\r\n");
  on_new("*0\r\n*1\r\n$4\r\nPING\r\n");
  on_new("*-1\r\n*1\r\n$4\r\nPING\r\n");
  on_new("PING\r\n");
  on_new("\r\nPING\r\n");
  on_new("ECHO \"a b\"\r\n");
  on_new("ECHO \"a b\r\n");
  on_new("ECHO 'it''s'\r\n");
  on_new("QUIT\r\n");
  on_new("*1\r\n\r\n");
}

TEST(parity_commands, quit_ends_the_connection) {
  parity p;
  p.same({"QUIT"});
  EXPECT_TRUE(p.peer().wait_closed());
  EXPECT_EQ(p.from_fake(), "<closed>");
}

TEST(parity_commands, time_shows_the_same_second) {
  parity p;
  auto const seconds = [](std::string const& reply) { return reply.substr(0, reply.find("\r\n", 9)); };
  EXPECT_EQ(seconds(p.ask_fake({"TIME"})), seconds(p.ask_real({"TIME"})));
}

}  // namespace
