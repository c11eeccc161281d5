package testkit

import (
	"os/exec"
	"testing"
)

// OtherUID is not a user here.
const OtherUID = -1

// AsOther ends the test: Windows has no other user for it.
func AsOther(t testing.TB, _ *exec.Cmd) {
	t.Helper()
	t.Skip("not shown: a process of another user cannot be started here")
}
