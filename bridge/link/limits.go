package link

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/wire"
)

// Limits bound the input from one page. A limit of 0 gets the default of LINK.md.
type Limits struct {
	HelloBytes      int // of the first frame; 64 KiB
	FrameBytes      int // of any other frame; 17 MiB
	ContentsBytes   int // of an answer; 16 MiB
	DescriptorBytes int // of a tool; of a resource in UTF-16 code units, as pages count; 256 KiB
	Resources       int // 10,000
	ResourcesBytes  int // of all descriptors together; 16 MiB
	Tools           int // 1,000
	ToolsBytes      int // together; 4 MiB
	URIBytes        int // 8,192
	Calls           int // per second; 5,000. Each KiB of a frame of calls counts as one more.
	CallsBurst      int // at once; 20,000. A debt of more than that ends the link.
	Asked           int // reads and tool calls that the page is sent at once; 64
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		v   *int
		def int
	}{
		{&l.HelloBytes, 64 << 10}, {&l.FrameBytes, 17 << 20}, {&l.ContentsBytes, 16 << 20},
		{&l.DescriptorBytes, 256 << 10}, {&l.Resources, 10_000}, {&l.ResourcesBytes, 16 << 20},
		{&l.Tools, 1000}, {&l.ToolsBytes, 4 << 20}, {&l.URIBytes, 8192},
		{&l.Calls, 5000}, {&l.CallsBurst, 20_000}, {&l.Asked, 64},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	return l
}

// nesting bounds the nesting of a page's JSON.
const nesting = 64

// An allowance is the number of calls that a page may send. It grows with time, up to CallsBurst,
// and may be overdrawn by as much again. Until that is paid back the page gets no answer, and the
// page layer sends no touches without one.
type allowance struct {
	left   int
	filled bridge.Time
}

// spend takes n calls at now. It reports false if that overdraws too much.
func (a *allowance) spend(now bridge.Time, n int, l *Limits) bool {
	a.fill(now, l)
	a.left -= n
	return a.left >= -l.CallsBurst
}

func (a *allowance) fill(now bridge.Time, l *Limits) {
	if passed := int(now - a.filled); passed > 0 {
		a.left = min(l.CallsBurst, a.left+min(passed, 1<<20)*l.Calls/1000)
		a.filled = now
	}
}

// inCredit is the time at which the allowance is no longer overdrawn.
func (a *allowance) inCredit(l *Limits) bridge.Time {
	if a.left >= 0 {
		return a.filled
	}
	return a.filled + bridge.Time((-a.left*1000+l.Calls-1)/l.Calls)
}

// above is the reason for exceeding a limit.
func above(what string, limit int, unit string) string {
	return what + "; the limit is " + wire.Itoa(limit) + unit
}
