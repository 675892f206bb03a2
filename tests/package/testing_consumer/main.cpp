// A user's test of a route of his own, built against the installed package: no server, no waiting, exact
// times.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <redoubt/testing/fake_client.hpp>
#include <redoubt/testing/world.hpp>

#include "route.hpp"

namespace {

using namespace std::chrono_literals;

void check(bool ok, char const* what) {
  if (ok) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::exit(1);
}

// With the fake client: nothing but the route and what Redis says.
void with_a_fake_client() {
  redoubt::testing::world world;
  redoubt::testing::fake_client redis(world.get_executor());
  sign_in_route route(redis);

  for (int i = 0; i < 5; ++i) check(world.run(route("ada")) == 200, "five attempts are let in");
  check(world.run(route("ada")) == 429, "the sixth is not");
  world.run_for(61s);
  check(world.run(route("ada")) == 200, "after a minute they are let in again");

  redis.redis().fill_memory();
  check(world.run(route("bob")) == 503, "nobody is let in while the limiter cannot count");
}

// With the real client on a simulated network: the same code as in production, in virtual time.
void with_the_real_client() {
  redoubt::testing::world world;
  redoubt::client redis(world.get_executor(), {.url = "redis://redis:6379"});
  sign_in_route route(redis);

  check(world.run(route("ada")) == 200, "healthy");
  world.redis().pause();
  auto const start = world.now();
  check(world.run(route("ada")) == 503, "frozen");
  check(world.now() - start <= 101ms, "a frozen Redis costs one attempt_timeout, not more");
  world.redis().resume();
  check(world.run(route("ada")) == 200, "back");
}

}  // namespace

int main() {
  with_a_fake_client();
  with_the_real_client();
  std::puts("the route does what it says");
}
