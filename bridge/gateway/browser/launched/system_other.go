//go:build !js && !linux

package launched

// adopt, reap and used are for Linux: elsewhere nobody is told of a child's children, and what is removed is tried until
// it works.
func adopt() {}

func reap(int) {}

func used(string) bool { return false }
