// Package figure formats a measured figure, and says where it was measured. It measures nothing.
package figure

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// Number has three significant digits, and all digits before the point: 4.45, 6,078, 0.758.
func Number(v float64) string {
	digits := 0
	if v != 0 {
		digits = max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	s := fmt.Sprintf("%.*f", min(digits, 3), v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return Grouped(s)
}

// Grouped puts a comma between thousands of a decimal number.
func Grouped(s string) string {
	whole, rest, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		return whole + "." + rest
	}
	return whole
}

// Quantity is a number with its unit, if it has one.
func Quantity(v float64, unit string) string { return strings.TrimSpace(Number(v) + " " + unit) }

// Ratio has two significant digits.
func Ratio(v float64) string {
	if v < 0.1 {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Machine names the machine of a measurement: the processor, the number of processors, the system
// and the Go version.
func Machine() string {
	return fmt.Sprintf("%s, %d processors, %s, %s",
		value("/proc/cpuinfo", "model name", ":", runtime.GOARCH),
		runtime.NumCPU(), value("/etc/os-release", "PRETTY_NAME", "=", runtime.GOOS),
		runtime.Version())
}

// value looks a key up in a file of keys and values. It returns `without` if the file or the key
// does not exist.
func value(file, key, sign, without string) string {
	f, err := os.Open(file)
	if err != nil {
		return without
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		k, v, ok := strings.Cut(lines.Text(), sign)
		if ok && strings.TrimSpace(k) == key {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return without
}

// Code lists, as git pathspecs, the files on which a figure can depend: all except documents and
// pictures.
var Code = []string{"bridge", "wasm", "js", "idl", "e2e", "demo", "go.mod", "go.sum", ":!*.md",
	":!*.png", ":!*.gif",
	":!demo/docs", ":!e2e/bench/bench.json"}

// Commit returns the checked-out commit, with "+" if code differs from it; empty outside of a
// repository.
func Commit() string {
	head, err := testcmd.Command("git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return ""
	}
	changed, err := testcmd.Command("git",
		append([]string{"status", "--porcelain", "--"}, Code...)...).Output()
	if err != nil || len(changed) > 0 {
		return strings.TrimSpace(string(head)) + "+"
	}
	return strings.TrimSpace(string(head))
}
