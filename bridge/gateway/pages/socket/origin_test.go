package socket

import (
	"testing"
	"time"
)

// Work of an origin is free up to a credit, which comes back with time, and then stretched.
func TestOriginThatKeepsTheGatewayBusy(t *testing.T) {
	o := newOrigin("http://localhost:3000")
	now := time.Now()
	for range maxCredit / time.Millisecond {
		if pause := o.spend(now, time.Millisecond); pause != 0 {
			t.Fatalf("it pauses for %v", pause)
		}
	}
	began, worked := now, time.Duration(0)
	for range 1000 {
		now = now.Add(time.Millisecond + o.spend(now.Add(time.Millisecond), time.Millisecond))
		worked += time.Millisecond
	}
	if part := now.Sub(began) / worked; part != partOf-1 && part != partOf {
		t.Errorf("it works for one part in %d", part)
	}
	now = now.Add(time.Hour)
	if pause := o.spend(now, maxCredit); pause != 0 {
		t.Errorf("an hour later it pauses for %v", pause)
	}
	if pause := o.spend(now, minPause); pause == 0 {
		t.Error("an hour has given it more than there is")
	}
}
