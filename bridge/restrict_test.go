//go:build !js

package bridge_test

import (
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/script"
)

func TestRestrictedPort(t *testing.T) {
	script.Play(t, "testdata/native/restricted_port.txtar", converse)
}

func TestDebuggingTools(t *testing.T) {
	script.Play(t, "testdata/native/debugging_tools.txtar", converse)
}
