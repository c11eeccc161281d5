//go:build js && wasm

// Package main connects package view to a page that hosts MCP Apps Views: the edge between Go and JavaScript, and
// nothing else. It is built into pagewire.views.wasm, apart from the page's core: a host of Views needs nothing of the
// core, and a page with resources needs nothing of this package.
//
// Numbers cross the edge, and text through linear memory; a message is one piece of JSON text. One instance serves all
// servers of a page, each by its own Host, which has a number. JavaScript calls the exports in this file; the Hosts'
// messages leave by the imports in imports.go; js/views/edge.ts is the other side. An export returns at once. Once one
// has returned dead, or thrown, or the program has exited, JavaScript must not call the instance again.
//
// An export never blocks, lets no panic out, and holds no value of JavaScript. It reads no option from the global
// object, so it needs neither safejs nor syscall/js: that saves 125 KB of brotli.
package main

import (
	"unsafe"

	"github.com/pagewire/pagewire/bridge/view"
	"github.com/pagewire/pagewire/wasm/compiler"
)

// The results of an export: a number of its own, or dead.
const (
	no   int32 = 0
	yes  int32 = 1
	dead int32 = -1
)

var (
	hosts []*view.Host // hosts[n-1] has the number n; nil if it has ended
	died  bool
	input []byte       // JavaScript writes it before it calls an export that takes a length
	armed float64 = -1 // the time of the last wake, or -1 for none
)

func main() { compiler.Main() }

// contain ends every export. A panic becomes dead, and the time of the next tick goes to JavaScript.
func contain(status *int32) {
	if compiler.Recovers {
		if r := recover(); r != nil {
			died = true
			report("views stopped" + reason(r))
		}
	}
	if died {
		*status = dead
		return
	}
	at := float64(-1)
	for _, h := range hosts {
		if h == nil {
			continue
		}
		if t, ok := h.Deadline(); ok && (at < 0 || float64(t) < at) {
			at = float64(t)
		}
	}
	if at != armed {
		armed = at
		wake(at)
	}
}

// reason is the text of a panic.
func reason(panicked any) string {
	switch r := panicked.(type) {
	case error:
		return ": " + r.Error()
	case string:
		return ": " + r
	}
	return ""
}

// buffer returns the address of at least n bytes, into which JavaScript writes the next export's text. It is valid
// until the next call of any export.
//
//go:wasmexport buffer
func buffer(n int32) uint32 {
	if cap(input) < int(n) || cap(input) > 1<<20 && n < 1<<16 { // one large message must not hold its memory for ever
		input = make([]byte, max(int(n), 1<<12))
	}
	input = input[:cap(input)]
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(input))))
}

// create makes a Host and returns its number. An option that is 0 gets its default.
//
//go:wasmexport create
func create(era, subscriptions, limitCode, updateInterval, readTimeout int32) (host int32) {
	defer contain(&host)
	h := home(len(hosts) + 1)
	hosts = append(hosts, view.New(view.Options{
		Era:              view.Era(era),
		MaxSubscriptions: int(subscriptions),
		LimitCode:        int(limitCode),
		UpdateInterval:   view.Time(updateInterval),
		ReadTimeout:      view.Time(readTimeout),
	}, h))
	return int32(h)
}

// destroy ends a Host. Its Views must have been closed.
//
//go:wasmexport destroy
func destroy(host int32) (status int32) {
	defer contain(&status)
	hosts[host-1] = nil
	return yes
}

// open begins a View; no means that there are too many.
//
//go:wasmexport open
func open(now float64, host, id int32) (status int32) {
	defer contain(&status)
	if err := hosts[host-1].Open(view.Time(now), view.ID(id)); err != nil {
		report(err.Error())
		return no
	}
	return yes
}

// shut ends a View.
//
//go:wasmexport shut
func shut(now float64, host, id int32) (status int32) {
	defer contain(&status)
	hosts[host-1].Close(view.Time(now), view.ID(id))
	return yes
}

// teardown reports that a View has been asked to end.
//
//go:wasmexport teardown
func teardown(now float64, host, id int32) (status int32) {
	defer contain(&status)
	hosts[host-1].Teardown(view.Time(now), view.ID(id))
	return yes
}

// receive takes a View's message from the buffer. It returns no for a message that the page must handle.
//
//go:wasmexport receive
func receive(now float64, host, id, n int32) (taken int32) {
	defer contain(&taken)
	if hosts[host-1].Receive(view.Time(now), view.ID(id), input[:n]) {
		return yes
	}
	return no
}

// fromServer takes the server's message from the buffer. It returns no for a message that may be another client's.
//
//go:wasmexport fromServer
func fromServer(now float64, host, n int32) (taken int32) {
	defer contain(&taken)
	if hosts[host-1].FromServer(view.Time(now), input[:n]) {
		return yes
	}
	return no
}

// learn reports that the server offers the URI in the buffer.
//
//go:wasmexport learn
func learn(now float64, host, n int32) (status int32) {
	defer contain(&status)
	hosts[host-1].Learn(view.Time(now), string(input[:n]))
	return yes
}

// connection reports that the connection to the server is lost, with era -1, or is back, with the server's era.
//
//go:wasmexport connection
func connection(now float64, host, era int32) (status int32) {
	defer contain(&status)
	if era < 0 {
		hosts[host-1].Lost(view.Time(now))
	} else {
		hosts[host-1].Back(view.Time(now), view.Era(era))
	}
	return yes
}

// tick does the work that has fallen due. JavaScript calls it at the time of the last wake.
//
//go:wasmexport tick
func tick(now float64) (status int32) {
	defer contain(&status)
	armed = -1
	for _, h := range hosts {
		if h != nil {
			h.Tick(view.Time(now))
		}
	}
	return yes
}

// tell answers by the import told with a Host's capabilities, or, if counts is not 0, with its counters.
//
//go:wasmexport tell
func tell(host, counts int32) (status int32) {
	defer contain(&status)
	h := hosts[host-1]
	if counts != 0 {
		told(h.Stats().JSON())
	} else {
		told(h.Capabilities())
	}
	return yes
}
