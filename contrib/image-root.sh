#!/bin/sh
# The files of the container image: image-root.sh BINARY EMPTY-FOLDER
#
# The binary, the libraries that it is linked with, certificate authorities, and a user; no shell
# and no package manager. The Dockerfile and `cargo xtask image` both call it.
set -eu
binary=$1 root=$2

for folder in usr/bin etc/ssl/certs tmp var/lib/umbel backups; do
    mkdir -p "$root/$folder"
done
cp "$binary" "$root/usr/bin/umbel"
strip "$root/usr/bin/umbel"
chmod 755 "$root/usr/bin/umbel"
# Links are followed: the image has files only.
ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'umbel:x:7440:7440::/var/lib/umbel:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'umbel:x:7440:' >"$root/etc/group"
# Names are looked up as on any machine.
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
# Engines replace it.
echo '127.0.0.1 localhost' >"$root/etc/hosts"
chmod 1777 "$root/tmp"
chown 7440:7440 "$root/var/lib/umbel" "$root/backups"
chmod 700 "$root/var/lib/umbel" "$root/backups"
