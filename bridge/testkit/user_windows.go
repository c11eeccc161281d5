//go:build !js

package testkit

import (
	"os/exec"
	"testing"
)

// OtherUID is no user here.
const OtherUID = -1

// AsOther ends the test: there is no other user to be had.
func AsOther(t testing.TB, _ *exec.Cmd) {
	t.Helper()
	t.Skip("not shown: a process of another user cannot be started here")
}
