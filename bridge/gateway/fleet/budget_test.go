//go:build !js

package fleet

import (
	"testing"
	"time"
)

// A user's pages say so much at once, and from then on so much a second.
func TestBudget(t *testing.T) {
	const budgetAtOnce, budgetPace = 10_000, 2_000
	b := budget{pace: budgetPace}
	now := time.Now()
	for range budgetAtOnce {
		b.spend(now)
	}
	if pause := b.pause(now); pause != 0 {
		t.Errorf("within the budget there is a pause of %v", pause)
	}
	for range budgetPace / 2 {
		b.spend(now)
	}
	if pause := b.pause(now); pause != time.Second/2 {
		t.Errorf("half a second's messages above it: a pause of %v", pause)
	}
	if pause := b.pause(now.Add(time.Second / 2)); pause != 0 {
		t.Errorf("half a second later: a pause of %v", pause)
	}
	for range 10 * budgetPace {
		b.spend(now)
	}
	if pause := b.pause(now); pause != maxPause {
		t.Errorf("far above it: a pause of %v", pause)
	}
}

// Pages of one user have one budget, and of another another.
func TestBudgetOfAUser(t *testing.T) {
	n := openNode(t, Options{})
	openReader(t, n, alice)
	tabs := []*tab{openTab(t, n, alice, nil), openTab(t, n, alice, nil), openTab(t, n, bob, nil)}
	for range 12_000 {
		tabs[0].page.user.budget.spend(time.Now())
	}
	if tabs[1].page.Pause() == 0 || tabs[2].page.Pause() != 0 {
		t.Errorf("pauses of %v and %v", tabs[1].page.Pause(), tabs[2].page.Pause())
	}
}
