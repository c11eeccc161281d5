//go:build !linux

package launched

import "syscall"

// endWithUs, adopt, reap and used are for Linux: elsewhere removal is tried until it works.
func endWithUs(*syscall.SysProcAttr) {}

func adopt() {}

func reap(int) {}

func used(string) bool { return false }
