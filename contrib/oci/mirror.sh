#!/bin/sh
# Starts the umbel host of one machine: shares the blobs of STORE, finds those of the others. Usage:
#   mirror.sh NAME STATE STORE HTTP RESP PEERS_LISTEN [ARGUMENT]...
# such as
#   mirror.sh node-1 /run/umbel /var/lib/containerd/io.containerd.content.v1.content/blobs \
#       10.0.0.1:7441 127.0.0.1:7440 10.0.0.1:7447 --hash-key-file /etc/umbel/hash-key --allow-remote
# ARGUMENT is any flag of umbel serve: --peer, and --oci-origin for clients that know no other registry.
set -eu
[ $# -ge 6 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
name=$1 state=$2 store=$3 http=$4 resp=$5 between=$6
shift 6
mkdir -p "$state"
store=$(cd "$store" && pwd)     # a relative path would be relative to the configuration
sed "s|@STORE@|$store|" "$(dirname "$0")/mirror.toml" > "$state/mirror.toml"
exec "${UMBEL:-umbel}" serve --config "$state/mirror.toml" --name "$name" --http "$http" --resp "$resp" \
    --listen "$between" --advertise "http://$http/v1/sets/blobs/objects" --log-level warn "$@"
