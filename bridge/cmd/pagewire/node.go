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
		Short: "Run a node, which serves many users' pages to agents over HTTP",
		Long: "Runs " + nodeProgram + ", the program beside this one, with all arguments. A service's\n" +
			"pages and agents connect to it. Several nodes make a fleet.",
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
