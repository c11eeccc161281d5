package clientconfig

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A process that is killed between two files has written each file as a whole or not at all. The next --live finishes
// its work, and --remove takes out all of ours, even after a --remove that was killed.
func TestKilledBetweenTwoFiles(t *testing.T) {
	for _, c := range Clients {
		if !c.IsLive() {
			continue
		}
		for _, killed := range []string{"--live, --remove", "--live, --live, --remove", "--remove, --remove"} {
			for n, more := 0, true; more; n++ {
				home := t.TempDir()
				s := &Setup{Client: c, Places: Places{runtime.GOOS, home, func(string) string { return "" }}, Binary: "/bin/pagewire"}
				o := &odd{Rand: rand.New(rand.NewPCG(uint64(n), 1)), newline: "\n"}
				was := map[string]string{}
				for _, p := range s.parts(true) {
					if p.at == nil || p.folder != "" || was[p.file] != "" {
						continue
					}
					if was[p.file] = o.settings(c.key, false, false); p.toml() {
						was[p.file], _ = o.table(false)
					}
					testkit.OK(t, os.MkdirAll(filepath.Dir(p.file), 0o700), os.WriteFile(p.file, []byte(was[p.file]), 0o600))
				}
				first, rest, _ := strings.Cut(killed, ", ")
				var change *Change
				var err error
				if first == "--live" {
					change, err = s.with(s.parts(true))
				} else {
					_, err = s.Write(t.Context(), true)
					testkit.OK(t, err)
					change, _, err = s.without(s.parts(true))
				}
				testkit.OK(t, err)
				all := slices.DeleteFunc(change.files, func(f *File) bool { return !f.Changed() })
				for _, f := range all[:n] {
					testkit.OK(t, f.check(c.Title), f.stage(), f.replace(c.Title))
				}
				more = n < len(all)
				for flag := range strings.SplitSeq(rest, ", ") {
					if flag == "--live" {
						_, err = s.Write(t.Context(), true)
						for _, p := range s.parts(true) {
							if !p.has() {
								t.Errorf("%s, %s: --live has not written all: %s", c.Name, killed, p.file)
							}
						}
					} else {
						_, err = s.Remove(t.Context())
					}
					testkit.OK(t, err)
				}
				what := fmt.Sprintf("%s, %s is killed after %d files", c.Name, killed, n)
				for _, p := range append(s.parts(true), s.entry()) {
					text, _ := Read(p.file)
					if before, theirs := was[p.file]; p.has() || !theirs && p.folder != "" && text != nil {
						t.Errorf("%s: ours is in %s: %q", what, p.file, text)
					} else if theirs && p.toml() && !strings.HasPrefix(string(text), before) ||
						theirs && !p.toml() && !slices.Equal(persons(t, text, c.key), persons(t, []byte(before), c.key)) {
						t.Errorf("%s: %q is %q", what, before, text)
					}
				}
			}
		}
	}
}
