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
    # The address of cache-1 in docs/security.md.
    ip address add 10.0.0.1/32 dev lo
    mount -t tmpfs none "$folder"
    mkdir "$folder/changes" "$folder/work" "$folder/system"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/changes,workdir=$folder/work" "$folder/system"
    mount -t proc proc "$folder/system/proc"
    mount --bind /dev "$folder/system/dev"
    mount -t tmpfs none "$folder/system/run"
    mount -t tmpfs none "$folder/system/tmp"
    cp "$package" "$folder/system/tmp/umbel.deb"
    cp "$0" "$folder/system/tmp/test.sh"
    cp "${0%/*}/syscall-filter.py" "$folder/system/tmp/"
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

echo "-- links of the documents"
find -L /usr/share/doc/umbel -name '*.md' >/tmp/documents
while read -r document; do
    sed '/^```/,/^```/d' "$document" | grep -o ']([^)#]*' | cut -c 3- | grep -v :// >/tmp/links || continue
    while read -r link; do
        [ -e "${document%/*}/$link" ] || fail "$document: $link is missing"
    done </tmp/links
done </tmp/documents

echo "-- the unit, and its system call filter"
unit=/usr/lib/systemd/system/umbel.service
systemd-analyze verify $unit
filter="python3 /tmp/syscall-filter.py $unit"
code=0
$filter true || code=$?
case $code in
0) $filter chown root /tmp/test.sh 2>/dev/null && fail "the filter permits chown" ;;
# What is missing was printed.
77 | 127) echo "skipped: the hosts below run without it" && filter= ;;
*) fail "the filter cannot be loaded" ;;
esac

# What the unit does, without systemd: its command, as its user, under its system call filter.
service=$(sed -n 's/^User=//p' $unit)
command=$(sed -n 's/^ExecStart=//p' $unit)
as_service="setpriv --reuid $service --regid $service --init-groups"
# Refused time slices are logged at this level only.
export UMBEL_LOG_LEVEL=info,umbel_node::priority=debug
serve() {
    # shellcheck disable=SC2086
    $as_service --bounding-set -all --no-new-privs $filter $command >/tmp/serve.out 2>/tmp/serve.log &
    host=$!
}
await() {
    for _ in $(seq 100); do
        umbel info "$@" >/dev/null 2>&1 && return
        kill -0 $host 2>/dev/null || { wait $host || fail "the host ended with code $?: $(cat /tmp/serve.log)"; }
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
grep 'slices of a thread' /tmp/serve.log && fail "the filter refuses time slices"
stop

echo "-- secured, as docs/security.md says"
cd /root
umbel config certs --hosts cache-1=10.0.0.1 --out certs >/dev/null
head -c 32 /dev/urandom | base64 >certs/hash-key
echo 'cache-1=10.0.0.1:7447' >certs/peers
echo 'a good password' | umbel config user add alice --permissions read,write,admin --users certs/users.toml >/dev/null
for file in ca.pem cache-1.pem cache-1.key hash-key peers users.toml; do
    install -m 0600 -o root -g root certs/$file /etc/umbel
done
# The configuration of the document, as it stands there.
sed -n '/^```toml$/,/^```$/{/^```/!p;/^```$/q}' /usr/share/doc/umbel/docs/security.md >/etc/umbel/umbel.toml
export UMBEL_AT=10.0.0.1:7440
# Files of another user are refused, and the message names the file.
serve
wait $host && fail "it read a file of root"
grep -q '/etc/umbel/.*[Pp]ermission denied' /tmp/serve.log || fail "$(cat /tmp/serve.log)"
# The line of docs/install.md that gives them to the service.
own=$(sed -n "s/^\$ sudo sh -c '\(.*chown.*\)'$/\1/p" /usr/share/doc/umbel/docs/install.md)
[ -n "$own" ] || fail "docs/install.md does not say whose the files are"
sh -c "$own"
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
$as_service umbel doctor --config /etc/umbel/umbel.toml >/tmp/doctor 2>&1 ||
    { cat /tmp/doctor; fail "doctor"; }

echo "-- a port that changed is refused at a reload"
sed -i 's/:7440"/:7450"/' /etc/umbel/umbel.toml
kill -HUP $host
for _ in $(seq 50); do grep -q 'only a restart can change resp' /tmp/serve.log && break; sleep 0.2; done
grep -q 'only a restart can change resp' /tmp/serve.log || fail "$(cat /tmp/serve.log)"
sed -i 's/:7450"/:7440"/' /etc/umbel/umbel.toml
stop

echo "-- restore, as that user"
mv /var/lib/umbel/catalogue /tmp/old
$as_service umbel restore /var/backups/umbel/second /var/lib/umbel
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
