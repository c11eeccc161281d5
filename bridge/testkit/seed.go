package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Seed is the seed of a random test: the number in an environment variable, or a new one. It is
// printed, and if the test fails it is also kept, in testdata/seeds.txt of the test's package.
func Seed(t testing.TB, variable string) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(variable), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Log("seed", seed)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		file := filepath.Join("testdata", "seeds.txt")
		_ = os.Mkdir("testdata", 0o755) // it may be there
		kept, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Log("the seed is not kept: ", err)
			return
		}
		defer kept.Close()
		fmt.Fprintf(kept, "%s %s=%d\n", t.Name(), variable, seed)
	})
	return seed
}
