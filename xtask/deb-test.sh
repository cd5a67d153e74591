#!/bin/sh
# Tries a Debian package: deb-test.sh PACKAGE EMPTY-FOLDER
#
# Called inside of namespaces of its own (mount, network, processes). What it installs goes to an
# overlay over this system, in memory, which is gone with the last process.
set -eu

fail() { echo "deb-test: $*" >&2; exit 1; }

if [ "${1:-}" != inside ]; then
    package=$1 folder=$2
    ip link set lo up
    mount -t tmpfs none "$folder"
    mkdir "$folder/changes" "$folder/work" "$folder/system"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/changes,workdir=$folder/work" "$folder/system"
    mount -t proc proc "$folder/system/proc"
    mount --bind /dev "$folder/system/dev"
    mount -t tmpfs none "$folder/system/run"
    mount -t tmpfs none "$folder/system/tmp"
    cp "$package" "$folder/system/tmp/umbel.deb"
    cp "$0" "$folder/system/tmp/test.sh"
    exec chroot "$folder/system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        DEBIAN_FRONTEND=noninteractive sh /tmp/test.sh inside
fi

mode() { stat -c '%U:%G %a' "$1"; }
expect() { [ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'"; }
missing() { for path; do [ ! -e "$path" ] || fail "$path is still there"; done; }

# Whatever this machine has of it is gone in the overlay.
dpkg -P umbel >/dev/null 2>&1 || true
rm -rf /etc/umbel /var/lib/umbel /var/backups/umbel

echo "-- install"
dpkg -i /tmp/umbel.deb >/dev/null
for path in /usr/bin/umbel /usr/lib/systemd/system/umbel.service /usr/share/man/man1/umbel.1.gz \
    /usr/share/man/man1/umbel-serve.1.gz /usr/share/bash-completion/completions/umbel \
    /usr/share/doc/umbel/third-party-licences.gz /usr/share/doc/umbel/copyright; do
    [ -s "$path" ] || fail "$path is missing"
done
expect 'configuration directory' "$(mode /etc/umbel)" 'root:umbel 750'
expect configuration "$(mode /etc/umbel/umbel.toml)" 'root:umbel 640'
expect data "$(mode /var/lib/umbel)" 'umbel:umbel 700'
expect backups "$(mode /var/backups/umbel)" 'umbel:umbel 700'
umbel config check /etc/umbel/umbel.toml >/dev/null
systemd-analyze verify /usr/lib/systemd/system/umbel.service

# What the unit does, without systemd: its command, as its user.
service=$(sed -n 's/^User=//p' /usr/lib/systemd/system/umbel.service)
command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/umbel.service)
serve() {
    # shellcheck disable=SC2086
    setpriv --reuid "$service" --regid "$service" --init-groups --bounding-set -all --no-new-privs \
        $command >/tmp/serve.out 2>/tmp/serve.log &
    host=$!
}
await() {
    for _ in $(seq 100); do
        umbel info "$@" >/dev/null 2>&1 && return
        kill -0 $host 2>/dev/null || break
        sleep 0.2
    done
    cat /tmp/serve.log >&2
    fail "the host does not answer"
}
stop() {
    kill -TERM $host
    wait $host || fail "the host did not stop in good order: $(cat /tmp/serve.log)"
}

echo "-- a host of the configuration that was installed"
serve
await
umbel add images cat.png >/dev/null
umbel backup first >/dev/null
[ -s /var/backups/umbel/first/backup.json ] || fail "no backup"
stop

echo "-- secured, as docs/security.md says"
cd /root
umbel config certs --hosts cache-1=127.0.0.1 --out certs >/dev/null
head -c 32 /dev/urandom | base64 >certs/hash-key
echo 'a good password' | umbel config user add alice --permissions read,write,admin --users certs/users.toml >/dev/null
install -m 0600 -o root -g root certs/ca.pem certs/cache-1.pem certs/cache-1.key certs/hash-key certs/users.toml /etc/umbel
cat >/etc/umbel/umbel.toml <<END
name = "cache-1"
data = "/var/lib/umbel"
backups = "/var/backups/umbel"
hash_key_file = "/etc/umbel/hash-key"
peer_ca = "/etc/umbel/ca.pem"
peer_cert = "/etc/umbel/cache-1.pem"
peer_key = "/etc/umbel/cache-1.key"
tls_cert = "/etc/umbel/cache-1.pem"
tls_key = "/etc/umbel/cache-1.key"
users = "/etc/umbel/users.toml"
END
# Files of another user are refused, and the message names the file.
serve
wait $host && fail "it read a file of root"
grep -q '/etc/umbel/.*[Pp]ermission denied' /tmp/serve.log || fail "$(cat /tmp/serve.log)"
chown umbel: /etc/umbel/*.pem /etc/umbel/cache-1.key /etc/umbel/hash-key /etc/umbel/users.toml
serve
export UMBEL_PASSWORD='a good password'
alice='--user alice --ca /root/certs/ca.pem'
# shellcheck disable=SC2086
await $alice
# shellcheck disable=SC2086
expect who "$(umbel who images cat.png $alice)" "$(printf 'cat.png\tcache-1')"
umbel who images cat.png >/dev/null 2>&1 && fail "without TLS and a password"
# shellcheck disable=SC2086
umbel backup second $alice >/dev/null
setpriv --reuid "$service" --regid "$service" --init-groups umbel doctor --config /etc/umbel/umbel.toml >/tmp/doctor 2>&1 ||
    { cat /tmp/doctor; fail "doctor"; }

echo "-- a port that changed is refused at a reload"
echo 'resp = "127.0.0.1:7450"' | cat - /etc/umbel/umbel.toml >/tmp/new
cat /tmp/new >/etc/umbel/umbel.toml
kill -HUP $host
for _ in $(seq 50); do grep -q 'only a restart can change resp' /tmp/serve.log && break; sleep 0.2; done
grep -q 'only a restart can change resp' /tmp/serve.log || fail "$(cat /tmp/serve.log)"
sed -i 1d /etc/umbel/umbel.toml
stop

echo "-- restore, as that user"
mv /var/lib/umbel/catalogue /tmp/old
setpriv --reuid "$service" --regid "$service" --init-groups umbel restore /var/backups/umbel/second /var/lib/umbel
serve
# shellcheck disable=SC2086
await $alice
# shellcheck disable=SC2086
expect who "$(umbel who images cat.png $alice)" "$(printf 'cat.png\tcache-1')"
stop

echo "-- upgrade"
before=$(sha256sum /etc/umbel/umbel.toml)
dpkg -i /tmp/umbel.deb >/dev/null 2>&1
expect configuration "$(sha256sum /etc/umbel/umbel.toml)" "$before"
[ -d /var/lib/umbel/catalogue ] || fail "an upgrade took the data"

echo "-- remove and purge"
dpkg -r umbel >/dev/null
missing /usr/bin/umbel /usr/lib/systemd/system/umbel.service /usr/share/doc/umbel /usr/share/man/man1/umbel.1.gz
[ -s /etc/umbel/umbel.toml ] && [ -d /var/lib/umbel/catalogue ] || fail "removing took configuration or data"
dpkg -P umbel >/dev/null
missing /etc/umbel/umbel.toml /var/lib/umbel
[ -s /etc/umbel/cache-1.key ] && [ -d /var/backups/umbel/second ] || fail "purging took secrets or backups"
echo "-- all passed"
