//go:build engines

package e2e

import (
	"context"
	"testing"

	"github.com/pagewire/pagewire/e2e/engine"
)

// Firefox's own model context, by its two preferences: the original of TestOlderContext's copy.
func TestFirefoxModelContext(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithTimeout(context.Background(), tabTime)
	t.Cleanup(end)
	f, err := engine.LaunchFirefox(ctx, engine.FirefoxOptions{Settings: map[string]any{
		"dom.modelcontext.enabled": true, "dom.modelcontext.testing.enabled": true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	b := &tab{t: t, ctx: ctx}
	if b.is, err = f.Open(ctx, b.record); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.is.Close)
	b.begin(serve(t, olderPage(""))).playsOlder()
}
