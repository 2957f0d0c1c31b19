#!/bin/bash
# Runs a program and restarts it if it dies, as systemd's Restart=always does on an installed host. TERM ends the
# program and this script.
set -u

stopped=no
child=
trap 'stopped=yes; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT

while [ $stopped = no ]; do
    "$@" &
    child=$!
    while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
    [ $stopped = yes ] && break
    printf '{"level":"warn","event":"restarted","program":"%s","code":%d}\n' "${1##*/}" "${code:-0}" >&2
    sleep 0.3
done
