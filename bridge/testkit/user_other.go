//go:build !unix && !js

package testkit

import (
	"os/exec"
	"testing"
)

// OtherUser skips the test: users are known apart on Linux alone.
func OtherUser(t testing.TB, role, at string) *exec.Cmd {
	t.Skip("needs a system with user ids")
	return nil
}
