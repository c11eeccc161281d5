// Package cli has what pagewire and pagewire-node share as programs: the name of their version, and
// their log. It never reads a flag itself.
package cli

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
)

// Version is the version that the build has stamped on a program, or else that of its module.
func Version(stamped string) string {
	if stamped != "" {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// Log makes a log by the values of --log-level and --log-format.
func Log(to io.Writer, level, format string) (*slog.Logger, error) {
	var from slog.Level
	if err := from.UnmarshalText([]byte(level)); err != nil || strings.ContainsAny(level, "+-") {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: from}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(to, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want text or json", format)
}
