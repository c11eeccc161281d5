//go:build !linux

package launched

// adopt, reap and used are for Linux: other systems do not report a child's children, and removal is tried until it
// works.
func adopt() {}

func reap(int) {}

func used(string) bool { return false }
