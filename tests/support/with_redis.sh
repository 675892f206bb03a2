#!/usr/bin/env bash
# Runs COMMAND with the URL of a redis-server of its own as last argument, and passes its status on. The server listens
# on a unix socket in a temporary folder only; nothing of it is left behind.
#   with_redis.sh REDIS_SERVER COMMAND [ARGUMENT]...
set -euo pipefail
SERVER=$1
shift
FOLDER=$(mktemp -d)
"$SERVER" --port 0 --unixsocket "$FOLDER/redis.sock" --save '' --appendonly no --dir "$FOLDER" >"$FOLDER/log" 2>&1 &
PROCESS=$!
trap 'kill "$PROCESS" 2>/dev/null; wait "$PROCESS" 2>/dev/null || true; rm -rf "$FOLDER"' EXIT
for ((i = 0; i < 200; ++i)); do
  if [ -S "$FOLDER/redis.sock" ]; then break; fi
  sleep 0.05
done
if [ ! -S "$FOLDER/redis.sock" ]; then
  cat "$FOLDER/log" >&2
  exit 1
fi
"$@" "unix://$FOLDER/redis.sock"
