//go:build !js && unix

package keeper

import "syscall"

// writeNow writes what can be written without waiting, and says how much that is. What fails is left to the next write.
func writeNow(to syscall.RawConn, text []byte) (n int) {
	if to == nil {
		return 0
	}
	to.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), text)
		return true
	})
	return max(n, 0)
}
