// Package extension brings in the pages of the browser extension: it is the process that the
// browser starts for the extension, and speaks with it over standard input and output.
//
// It only passes frames on. For each document that the extension opens, it connects to the daemon's
// /page as the document would, over the daemon's socket, so that the daemon knows its user. It
// connects again when there is another daemon. It never looks into a frame. The extension's worker
// puts the browser's facts about the document into the first frame, and the daemon bounds and
// checks all frames. The extension's own messages are bounded here: a message that is too long or
// invalid is refused, counted and logged, and has no other effect.
//
// The messages are JSON objects with a type. From the extension:
//
//	open   id, origin: a document of that origin has come. pagewire://front and pagewire://tabs are
//	       not: their frames are the extension's own reports of open tabs, for package socket
//	frame  id, session, text, more, ack: a frame of the document's link; with more, a piece. An ack above 0 comes back
//	close  id: the document has gone, or may not be read any more. Its earlier frames are still sent
//
// To it:
//
//	hello    version, secret: the process runs; with the secret the extension can use a WebSocket instead of it
//	open     id, session: the daemon is there: the document's link begins. Frames of other sessions are ignored
//	frame    id, text, more: a frame for the document; a piece has at most 1 MiB of JSON, the browser's limit
//	taken    id, session, ack: the daemon has accepted all pieces up to this one. Waiting for it keeps buffers small
//	close    id, reason: the session is over; another one may follow
//	refused  reason, count, id: a message of the extension's was refused; with an id the document is no longer open
//	failed   reason: the process ends, since it cannot serve
package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/pagewire/pagewire/bridge/internal/secret"
)

const (
	// ExtensionID is our extension's id: it follows from the key in its manifest.
	ExtensionID = "cfcnkimmciafamoogfahooifkmmegfho"
	// ExtensionOrigin is the origin of its own pages and its worker.
	ExtensionOrigin = "chrome-extension://" + ExtensionID
	// FirefoxID is our extension's id in Firefox, from its manifest. The origin of its pages is
	// different in each profile.
	FirefoxID = "extension@pagewire.github.io"
	// HostName is the name under which the browser knows this process.
	HostName = "com.pagewire.host"
)

// SecretFile is the path of the extension's secret, in the directory of the token.
func SecretFile(tokenFile string) string {
	return filepath.Join(filepath.Dir(tokenFile),
		"extension")
}

// Secret returns the secret that the extension and this user's gateways share. It fails if there is
// none yet, or if its file is faulty.
func Secret(tokenFile string) (string, error) {
	known, err := secret.Load(SecretFile(tokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("the extension is not installed: pagewire extension install")
	}
	return known, fileError(err)
}

// MakeSecret returns the secret, and makes one if there is none.
func MakeSecret(tokenFile string) (string, error) {
	known, err := secret.Make(SecretFile(tokenFile))
	return known, fileError(err)
}

func fileError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the extension's secret: %w", err)
}

const (
	// frontOrigin and tabsOrigin are the origins of the extension's own reports.
	frontOrigin, tabsOrigin = "pagewire://front", "pagewire://tabs"
	// maxDocuments and maxPerOrigin bound the open documents, as package socket does.
	maxDocuments, maxPerOrigin = 1024, 256
)

// A host is one run of Serve.
type host struct {
	shared
	running sync.WaitGroup // the documents

	// The reader's alone: documents are those that are open, and origins counts them.
	documents map[int64]*document
	origins   map[string]int
	refused   int
}

// Serve relays until the end of in, which returns nil, until ctx ends, which returns its error, or
// until the browser reads no more. The caller should close in when ctx ends: a read of standard
// input cannot be ended otherwise.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &host{shared: shared{o: o, out: writer{w: out}, waiting: make(chan struct{}, 1)},
		documents: map[int64]*document{}, origins: map[string]int{}}
	defer h.running.Wait()
	defer cancel()
	if err := h.out.write(message{Type: "hello", Version: o.Version,
		Secret: o.Secret}); err != nil {
		return fmt.Errorf("the browser: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.read(ctx, newReader(in)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fail tells the extension the reason why Serve does not run.
func Fail(out io.Writer, reason string) {
	w := writer{w: out}
	_ = w.write(message{Type: "failed", Reason: reason}) // the extension has gone
}

func (h *host) read(ctx context.Context, in *reader) error {
	defer func() {
		for id := range h.documents {
			h.close(id)
		}
	}()
	for {
		text, err := in.next()
		switch {
		case errors.Is(err, errTooLong):
			h.refuse(err.Error(), 0)
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			h.refuse("no message of the extension: "+err.Error(), 0)
			continue
		}
		if why := h.handle(ctx, m); why != "" {
			h.refuse(why, 0)
		}
	}
}

// refuse reports a refusal. id is the document that was closed for it, or 0.
func (h *host) refuse(why string, id int64) {
	h.refused++
	h.o.Log.Warn("refused a message of the browser", "reason", why, "count", h.refused)
	// the reader notices
	_ = h.out.write(message{Type: "refused", ID: id, Reason: why, Count: h.refused})
}

// handle handles a message. It returns the reason of a refusal, or "".
func (h *host) handle(ctx context.Context, m message) string {
	d := h.documents[m.ID]
	switch {
	case m.Type == "open":
		return h.open(ctx, d, m)
	case m.Type != "frame" && m.Type != "close":
		return "an unknown type"
	case d == nil:
		return "the document is not open"
	case m.Type == "close":
		h.forget(m.ID)
		d.leave()
	case !d.push(m):
		h.expel(d, "a document's frames come faster than the daemon takes them, and it was closed")
	case h.queued.Load() > maxQueuedAll:
		h.expel(h.fullest(),
			"frames of all documents come faster than the daemon takes them, and that for which most "+
				"waits was closed")
	}
	return ""
}

// open adds a document, or returns the reason of a refusal.
func (h *host) open(ctx context.Context, known *document, m message) string {
	u, err := url.Parse(m.Origin)
	switch {
	case known != nil:
		return "the document is open already"
	case m.ID <= 0:
		return "a document's number is above 0"
	case m.Origin != frontOrigin && m.Origin != tabsOrigin && (err != nil || u.Scheme != "http" &&
		u.Scheme != "https" || u.Scheme+"://"+u.Host != m.Origin):
		return "an origin of no web page"
	case len(h.documents) >= maxDocuments:
		return fmt.Sprintf("%d documents are open, and no more are taken", maxDocuments)
	case h.origins[m.Origin] >= maxPerOrigin:
		return fmt.Sprintf("%d documents of %s are open, and no more are taken", maxPerOrigin,
			m.Origin)
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &document{h: &h.shared, id: m.ID, origin: m.Origin, cancel: cancel,
		wake: make(chan struct{}, 1),
		log:  h.o.Log.With("origin", m.Origin)}
	h.documents[m.ID] = d
	h.origins[m.Origin]++
	h.running.Go(func() { d.run(ctx) })
	return ""
}

// expel closes a document for a reason.
func (h *host) expel(d *document, why string) {
	h.close(d.id)
	h.refuse(why, d.id)
}

// fullest is the document with the longest queue.
func (h *host) fullest() *document {
	var most *document
	bytes := -1
	for _, d := range h.documents {
		if n := d.waits(); n > bytes {
			most, bytes = d, n
		}
	}
	return most
}

func (h *host) close(id int64) {
	d := h.documents[id]
	h.forget(id)
	d.cancel()
}

// forget removes a document.
func (h *host) forget(id int64) {
	d := h.documents[id]
	delete(h.documents, id)
	if h.origins[d.origin]--; h.origins[d.origin] == 0 {
		delete(h.origins, d.origin)
	}
}
