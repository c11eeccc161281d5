package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

// nodeProgram is a separate program, since its NATS server would take 1.8 MB of memory in each
// agent's process.
const nodeProgram = "pagewire-node"

func nodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "node",
		Short: "Serve a service's open pages to its own agents, on several machines",
		Long: "Runs " + nodeProgram +
			", the program beside this one. A node is one process of a fleet: the\n" +
			"pages of a service connect to it, and so do the agents of the service, over HTTP. All arguments are\n" +
			"passed on to it.",
		Example:            "  pagewire node --help",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := besideThis(nodeProgram)
			if err != nil {
				return cli.Hint(err,
					"install it: go install github.com/pagewire/pagewire/bridge/cmd/"+nodeProgram)
			}
			return replaceBy(cmd, program, args)
		},
	}
}

// besideThis finds a program in this program's directory or on PATH.
func besideThis(name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), name)
			if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
				return beside, nil
			}
		}
	}
	found, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is neither beside this program nor on PATH", name)
	}
	return found, err
}
