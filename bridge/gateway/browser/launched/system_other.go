//go:build !js && !linux

package launched

// adopt and reap are for Linux: elsewhere nobody is told of a child's children, and what is removed is tried until it
// works.
func adopt() {}

func reap() {}
