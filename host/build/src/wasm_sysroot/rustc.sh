#!/bin/sh
# Debian's compiler with this directory as its sysroot.
bin=${0%/*}
exec /usr/bin/rustc --sysroot "${bin%/*}" "$@"
