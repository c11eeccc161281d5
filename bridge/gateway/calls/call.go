package calls

import (
	"context"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// A Call is a call of a tool at the gateway. Its methods that take a context let go of the
// gateway's lock while they wait, and return early when the context ends. All others are called
// with the lock held.
type Call interface {
	// Memory is the agent's memory. It is nil if the agent has gone, and for sessions of one
	// request.
	Memory() *follow.Memory
	// Party is whose share of maxAwaited the call needs.
	Party() string
	// Sees reports whether the agent sees a URI or an origin. Others do not exist for it.
	Sees(uri string) bool
	// Reminds reports whether results for the agent end with reminders, of at most ReminderChars,
	// and whether these include contents (inline).
	Reminds() (told, inline bool)
	// Older returns the URIs that had changed since the agent read them when it called a page's
	// tool.
	Older() map[string]bool
	// Look reads URIs at their pages, all at the same time, and counts their changes from then on.
	// It leaves out those that were not answered before ctx has ended.
	Look(ctx context.Context, uris ...string) map[string]*live.Look
	Waiter
	// Tick makes the call run f after a time while it waits, and then again after the time that f
	// returns.
	Tick(after time.Duration, f func() (next time.Duration))
	// Apart runs work on what an origin gave, without the lock and when it is that origin's turn.
	// The context of work ends with ctx, and with the page that the call is to.
	Apart(ctx context.Context, origin string, work func(ctx context.Context))
	// Progress reports the call's progress to the agent. A total of 0 is unknown.
	Progress(done, total int, message string)
	// Holds reports whether the agent may still have all that Look gave. If not, the answer must
	// have none of it, and Complete does not ask again.
	Holds() bool
	// Complete answers with the JSON text of MCP's CallToolResult. It does nothing if the call has
	// ended.
	Complete(result []byte)
}
