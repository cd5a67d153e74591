#!/bin/sh
# Runs a host in the files of the container image, as the Dockerfile says: image-test.sh FOLDER
#
# Called inside of namespaces of its own (mount, network, processes). As in a container that is
# started with a read-only root: only the volumes can be written.
set -eu
image=$1

mount --bind "$image" "$image"
mkdir -p "$image/proc" "$image/dev"
mount -t proc proc "$image/proc"
mount --bind /dev "$image/dev"
for volume in var/lib/umbel backups; do
    mount -t tmpfs -o uid=7440,gid=7440,mode=700 none "$image/$volume"
done
mount -o remount,bind,ro "$image"

export PATH=/usr/sbin:/usr/bin UMBEL_DATA=/var/lib/umbel UMBEL_BACKUPS=/backups
as_user() { chroot --userspec=7440:7440 "$image" "$@"; }
# Not through the function: the signal is for the host, not for a shell.
chroot --userspec=7440:7440 "$image" /usr/bin/umbel serve --name image >/dev/null 2>&1 &
host=$!
for _ in $(seq 100); do
    as_user /usr/bin/umbel info --json >/dev/null 2>&1 && break
    sleep 0.2
done
as_user /usr/bin/umbel info --json >/dev/null
as_user /usr/bin/umbel add images cat.png
as_user /usr/bin/umbel backup first
as_user /usr/bin/umbel who images cat.png --at localhost:7440
kill -TERM $host
wait $host
