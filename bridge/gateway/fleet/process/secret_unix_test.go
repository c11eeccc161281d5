//go:build unix

package process

import (
	"context"
	"os"
	"strings"
	"testing"
)

// A secret that everybody on the machine may read is refused; one that a group may read is what Kubernetes mounts.
func TestSecretsThatOthersMayRead(t *testing.T) {
	f := newFleet(t, 0)
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o604: true, 0o644: true} {
		if err := os.Chmod(f.secret, mode); err != nil {
			t.Fatal(err)
		}
		o := f.next().options()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Run(ctx, o); (err != nil) != refused || refused && !strings.Contains(err.Error(), "chmod o=") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}
