package main

import (
	"os"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/fleet/process"
	"github.com/pagewire/pagewire/demo/reference"
)

func TestReference(t *testing.T) {
	reference.Check(t, "../../../demo/docs/cli-node.md", command(&process.Options{}, os.LookupEnv))
}
