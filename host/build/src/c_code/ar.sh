#!/bin/sh
exec ZIG ar "$@"
