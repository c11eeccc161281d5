package endpoint

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// unanswered counts the requests that Settle waits for.
type unanswered struct{ open atomic.Int64 }

// counted is the context key of the function that takes a request out of those that Settle waits
// for.
type counted struct{}

// count counts a request until leave is called, or its answer turns out to be a stream.
func (u *unanswered) count(r *http.Request) (counts *http.Request, leave func()) {
	u.open.Add(1)
	leave = sync.OnceFunc(func() { u.open.Add(-1) })
	return r.WithContext(context.WithValue(r.Context(), counted{}, leave)), leave
}

// streams takes a request out of those that Settle waits for. In a legacy session no header shows
// that the answer is a stream.
func streams(r *http.Request) {
	if leave, ok := r.Context().Value(counted{}).(func()); ok {
		leave()
	}
}

// Settle waits until all requests of agents are answered, except streams, or until ctx ends.
func (u *unanswered) Settle(ctx context.Context) {
	for u.open.Load() > 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}
