//go:build !pagewire_assets

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABinaryWithoutFilesSaysHowToGetThem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, args := range []string{"assets list", "assets write " + dir, "assets write --force " + dir} {
		status, out, errs := run(strings.Fields(args)...)
		if status != exitFailed || out != "" || !strings.HasPrefix(errs, "pagewire: ") ||
			!strings.Contains(errs, "make build") {
			t.Errorf("%s: status %d, stdout %q, stderr %q", args, status, out, errs)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory was made for files that are not there")
	}
}
