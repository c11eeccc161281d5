package link

import (
	"github.com/pagewire/pagewire/bridge"
)

// Version is the version of the link.
const Version = 1

// ShownHeader is a header of the request for a WebSocket. It says that what follows is from a
// program of the user's, and not from a page: scripts of pages can set no header there.
const ShownHeader = "Pagewire-Shown"

// About is a page's description of itself, in its hello and later in notes.
type About struct {
	Epoch string
	Tab   string
	Frame string
	URL   string
	// Origin is the origin of an extension's page. The connection has another origin.
	Origin string
	// Browser is the User-Agent of an extension's browser, Profile the user's name for the profile,
	// and Window identifies the window; each is "" if the extension does not give it.
	Browser, Profile, Window string
	// Target is the key of an extension's tab by CDP; "" if the extension does not know it.
	Target string
	// Title is nil if the page does not give it.
	Title *string
	// Focused is the time of the last focus of the page's window, in ms since 1970; 0 if the page
	// does not give it.
	Focused int64
	// Dial counts the document's connections, including this one; 0 if the page does not give it.
	Dial int64
	// Shown says that it is not the page but what its user shows of it. Only an extension can say
	// so, and who connects with ShownHeader.
	Shown bool
	// Starts says that the page says when it starts a tool, and asks before it starts one late.
	Starts bool
}

// A Core receives a page's calls. Peer.Receive calls its methods, in the page's order.
type Core interface {
	// Hello comes first, and once. An error ends the link, and is sent to the page.
	Hello(About) error
	// Register offers a new resource; descriptor is its JSON text, as the page wrote it. An error
	// refuses it, and is sent to the page.
	Register(r bridge.Resource, descriptor string) error
	// Unregister withdraws the resource registered under uri.
	Unregister(uri string)
	// Touch reports a change of uri. If the revision is not new, it only reports the current
	// revision.
	Touch(uri string, revision int64)
	// SetTools replaces the page's tools; text is their JSON text, as the page wrote it.
	SetTools(tools []bridge.Tool, text string) error
	// Note changes members of Hello's About.
	Note(About)
	// Bye ends the link. With gone set the page will not come back.
	Bye(gone bool)
}

// An Answer is a page's answer to a read or a tool call.
type Answer struct {
	// Contents is the JSON text of contents, or of a tool's result, as the page wrote it. It must
	// not be changed.
	Contents []byte
	// Checked is what the gate of Frame.Check has added.
	Checked any
	// Revision is the page's count of changes when it began to answer.
	Revision int64
	// Failure is the reason of a failure, or "".
	Failure bridge.Failure
	// Detail is a sentence about Failure that agents may see.
	Detail string
	// Said means that Detail is the page's own words.
	Said bool
	// Gone means that the link ended before an answer.
	Gone bool
	// Began, of an answer with Gone, means that the page had started the tool.
	Began bool
	// Stale has the URIs whose changes kept the tool from running.
	Stale []string
}

// Stale is the Failure of a tool that did not run, because a URI that CallTool named has changed.
const Stale bridge.Failure = "stale"

// A Seen is a revision of a URI that the caller of a tool has seen.
type Seen struct {
	URI      string
	Revision int64
}

// An Ended is the reason why a link is over.
type Ended struct{ Reason string }

func (e *Ended) Error() string { return "the link has ended: " + e.Reason }
