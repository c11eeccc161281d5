package node

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A Tracer follows agents' requests to pages from node to node. It gets no contents and no URI,
// only the user's hash. Its methods may be called concurrently, and must not block.
type Tracer interface {
	// Asks begins a call of a page, "read" or "callTool", at the node of its reader. ctx is the
	// agent's request, if only one request can have caused the call. carry, a word without spaces,
	// goes to the page's node with the call. done is called once, and ok is whether the call was
	// answered.
	Asks(ctx context.Context, call, user string) (carry string, done func(ok bool))
	// Answers begins the same call at the page's node.
	Answers(carry, call, user string) (done func(ok bool))
}

// requests are the open requests at a Reader.
type requests struct {
	mu  sync.Mutex
	all []context.Context
}

func (q *requests) enter(ctx context.Context) (leave func()) {
	ctx, cancel := context.WithCancel(ctx) // so that no two in the list are equal
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, ctx)
	return func() {
		cancel()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.all = slices.DeleteFunc(q.all, func(o context.Context) bool { return o == ctx })
	}
}

// only returns the context of the single open request. With several it returns an empty one,
// because the engine makes one call of a page for all agents that read the same.
func (q *requests) only() context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.all) == 1 {
		return q.all[0]
	}
	return context.Background()
}

// A trail has the traced calls of one session, by number. Its zero value is empty; its owner guards
// it.
type trail map[int64]func(ok bool)

// begin adds a call. It replaces one with the same number.
func (t *trail) begin(id int64, done func(ok bool)) {
	t.done(id, false)
	if *t == nil {
		*t = trail{}
	}
	(*t)[id] = done
}

func (t *trail) done(id int64, ok bool) {
	if done := (*t)[id]; done != nil {
		delete(*t, id)
		done(ok)
	}
}

func (t *trail) closeAll() {
	for id := range *t {
		t.done(id, false)
	}
}

// answered ends the calls that a frame of the page answers.
func (t *trail) answered(frame []byte) {
	if len(*t) == 0 {
		return
	}
	if text, whole := strings.CutPrefix(string(frame[:min(len(frame), 24)]), "="); whole {
		number, _, _ := strings.Cut(text, " ")
		id, _ := wire.Value(number).Int() // 0, which no call has, if it is not a number
		t.done(id, true)
		return
	}
	eachCall(frame, func(name wire.Value, id int64) {
		if name.Is("complete") {
			t.done(id, false)
		}
	})
}

// asked begins the calls in a frame of a core, each by begin, and ends those that the frame
// cancels.
func (t *trail) asked(frame []byte, begin func(call string) (done func(ok bool))) {
	eachCall(frame, func(name wire.Value, id int64) {
		switch {
		case name.Is("read"):
			t.begin(id, begin("read"))
		case name.Is("callTool"):
			t.begin(id, begin("callTool"))
		case name.Is("end"):
			t.done(id, false)
		}
	})
}

func eachCall(frame []byte, f func(name wire.Value, id int64)) {
	wire.Value(frame).Elements(func(call wire.Value) bool {
		var name wire.Value
		i := 0
		call.Elements(func(v wire.Value) bool {
			if i == 0 {
				name = v
			} else if id, ok := v.Int(); ok {
				f(name, id)
			}
			i++
			return i < 2
		})
		return true
	})
}
