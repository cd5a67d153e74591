#!/bin/sh
# Starts one cooperating cache: nginx and an umbel host. Ends both when it ends. Usage:
#   cooperate.sh NAME DIR LISTEN ORIGIN RESP HTTP PEERS_LISTEN [PEER]...
# such as
#   cooperate.sh cache-1 /var/cache/c1 127.0.0.1:8081 origin:80 127.0.0.1:7440 127.0.0.1:7441 127.0.0.1:7447
#   cooperate.sh cache-2 /var/cache/c2 127.0.0.1:8082 origin:80 127.0.0.1:7450 127.0.0.1:7451 127.0.0.1:7457 127.0.0.1:7447
set -eu
PATH=$PATH:/usr/sbin        # where Debian has nginx
[ $# -ge 7 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
for needed in nginx "${UMBEL:-umbel}"; do
    command -v "$needed" > /dev/null || { echo "$0: $needed is not installed, or not in PATH" >&2; exit 2; }
done
name=$1 dir=$2 listen=$3 origin=$4 resp=$5 http=$6 between=$7
shift 7
peers=""
for peer in "$@"; do peers="$peers --peer $peer"; done
here=$(dirname "$0")
mkdir -p "$dir/objects"
dir=$(cd "$dir" && pwd)       # nginx takes relative paths as relative to its prefix
cp "$here/umbel.toml" "$dir/umbel.toml"
sed -e "s|@DIR@|$dir|g" -e "s|@LISTEN@|$listen|" -e "s|@ORIGIN@|$origin|" -e "s|@UMBEL@|$http|" \
    "$here/cache.conf" > "$dir/nginx.conf"
# As root, nginx's workers are of another user, who must be able to write there.
globals=""
if [ "$(id -u)" = 0 ]; then
    globals="user ${NGINX_USER:-www-data};"
    chown -R "${NGINX_USER:-www-data}" "$dir"
fi
started=""
trap 'kill $started 2>/dev/null || true; wait' EXIT
trap 'exit 0' INT TERM
"${UMBEL:-umbel}" serve --config "$dir/umbel.toml" --name "$name" --advertise "http://$listen/held" \
    --resp "$resp" --http "$http" --listen "$between" $peers --log-level warn &
started="$started $!"
nginx -e "$dir/error.log" -p "$dir" -c "$dir/nginx.conf" -g "$globals" &
started="$started $!"
wait
