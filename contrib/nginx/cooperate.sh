#!/bin/sh
# Starts one cooperating cache: nginx, an umbel host and a watch of the objects. Ends all three
# when it ends. Usage:
#   cooperate.sh NAME DIR LISTEN ORIGIN RESP HTTP PEERS_LISTEN [PEER]...
# such as
#   cooperate.sh cache-1 /var/cache/c1 127.0.0.1:8081 origin:80 127.0.0.1:7440 127.0.0.1:7441 127.0.0.1:7447
#   cooperate.sh cache-2 /var/cache/c2 127.0.0.1:8082 origin:80 127.0.0.1:7450 127.0.0.1:7451 127.0.0.1:7457 127.0.0.1:7447
set -eu
name=$1 dir=$2 listen=$3 origin=$4 resp=$5 http=$6 between=$7
shift 7
peers=""
for peer in "$@"; do peers="$peers --peer $peer"; done
here=$(dirname "$0")
umbel=${UMBEL:-umbel}
mkdir -p "$dir/objects"
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
"$umbel" serve --name "$name" --memory --advertise "http://$listen/held" \
    --resp "$resp" --http "$http" --listen "$between" $peers --log-level warn &
started="$started $!"
until "$umbel" sets --at "$resp" > /dev/null 2>&1; do sleep 0.1; done
"$umbel" watch objects --dir "$dir/objects" --allow-empty --at "$resp" > /dev/null &
started="$started $!"
nginx -e "$dir/error.log" -p "$dir" -c "$dir/nginx.conf" -g "$globals" &
started="$started $!"
wait
