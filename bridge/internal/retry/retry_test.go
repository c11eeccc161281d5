package retry

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 18*time.Second)
		defer cancel()
		lasts := map[int]time.Duration{2: 3 * time.Second, 5: 4 * time.Second}
		began := time.Now()
		var at []time.Duration
		for range Attempts(ctx, time.Second, 3*time.Second) {
			at = append(at, time.Since(began)/time.Second)
			time.Sleep(lasts[len(at)])
		}
		// The pauses are 1, 2, 3 and 3 s. Attempt 2 takes 3 s. Attempt 5 takes 4 s, and the pause after it is 1 s.
		if want := []time.Duration{0, 1, 6, 9, 12, 17}; !slices.Equal(at, want) {
			t.Errorf("the attempts began after %d s, want %d", at, want)
		}
		if took := time.Since(began); took != 18*time.Second {
			t.Errorf("it ended after %v, and its context after 18 s", took)
		}
		for range Attempts(ctx, time.Second, time.Second) {
			t.Error("an attempt after the end of its context")
		}
	})
}
