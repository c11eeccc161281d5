package link

import (
	"github.com/pagewire/pagewire/bridge"
)

// Version is the version of the link.
const Version = 1

// About is what a page says of itself in its hello, and later in notes.
type About struct {
	Epoch string
	Tab   string
	Frame string
	URL   string
	// Origin is that of an extension's page, which is not its own.
	Origin string
	// Title is nil where it is not said.
	Title *string
	// Focused is when the page's window had the focus last, in ms since 1970; 0 where it is not said.
	Focused int64
	// Dial is how many times the document has connected, this time included; 0 where it is not said.
	Dial int64
}

// A Core is told what a page says. Its methods are called from within Peer.Receive, in the page's order.
type Core interface {
	// Hello comes first, and once. An error ends the link, and is told to the page.
	Hello(About) error
	// Register offers a resource in place of none: an error refuses it, and is told to the page.
	Register(bridge.Resource) error
	// Unregister withdraws the resource registered under uri.
	Unregister(uri string)
	// Touch says that what uri reads as has changed, or, where its revision is none that is new, what that is.
	Touch(uri string, revision int64)
	// SetTools says what tools there are, in place of what was said before.
	SetTools([]bridge.Tool) error
	// Note says what has changed of what Hello said.
	Note(About)
	// Bye says that the page ends the link. With gone set it will not come back.
	Bye(gone bool)
}

// A TextCore passes on what a page offers as the page wrote it. It is told that in place of Register and SetTools, when
// it has been held against the limits.
type TextCore interface {
	Core
	RegisterText(uri, descriptor string) error
	SetToolsText(tools string) error
}

// An Answer is a page's to a read or a tool call.
type Answer struct {
	// Contents is the JSON text of contents, or of a tool's result, as the page wrote it: it has been parsed by nobody.
	// It must not be changed.
	Contents []byte
	// Revision is the page's count of changes when it began to answer.
	Revision int64
	// Failure says what went wrong; "" if nothing did.
	Failure bridge.Failure
	// Detail is a sentence on Failure that agents may see.
	Detail string
	// Gone says that the link has ended before there was an answer.
	Gone bool
	// Stale has the URIs for whose change the tool did not run.
	Stale []string
}

// Stale is the Failure of a tool that did not run, since something that it must not be older than has changed.
const Stale bridge.Failure = "stale"

// A Seen is a revision of a URI that whoever calls a tool has seen.
type Seen struct {
	URI      string
	Revision int64
}

// An Ended is why a link is over.
type Ended struct{ Reason string }

func (e *Ended) Error() string { return "the link has ended: " + e.Reason }
