//go:build !js

package gateway

import (
	"crypto/sha256"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A look is what a URI reads as, and as of when, for an agent that is given it by a tool.
type look struct {
	uri      string
	revision int64  // of the last change before it was read
	text     string // all of it that is text
	images   []any  // the rest, as content of a result
	hash     [32]byte
	why      string // it could not be read
	epoch    string // with count, the page's own revision; "" where that is not known
	count    int64
}

// version is what an agent that is given a part of it, or with "" all, has then.
func (l *look) version(part string) seen.Version {
	return seen.Version{Revision: l.revision, Part: part, Text: l.text, Hash: l.hash, Epoch: l.epoch, Count: l.count}
}

// look reads a URI at its page. Changes of it are counted from then on. done is called once, with the lock held, unless
// end is called before.
func (g *Gateway) look(uri string, done func(*look)) (end func()) {
	ended := false
	stop := func() {}
	finish := func(l *look) {
		if ended {
			return
		}
		ended = true
		stop()
		l.uri = uri
		done(l)
	}
	// The engine waits for tools longer than for reads.
	late := time.AfterFunc(g.opt.ReadTimeout, func() {
		g.mu.Lock()
		defer g.unlock()
		finish(&look{why: "its page has not answered for " + g.opt.ReadTimeout.String()})
	})
	stop = func() { late.Stop() }
	g.track([]string{uri}, func(failed map[string]string) {
		if ended {
			return
		}
		if why := failed[uri]; why != "" {
			finish(&look{why: why})
			return
		}
		revision := g.tools.revision(uri) // before the read: a change during it is news
		asked, err := g.engine.Resolve(uri)
		r := g.catalog.routes[asked.Key]
		switch {
		case err != nil || r == nil:
			finish(&look{why: "no open page offers this resource now"})
		case r.page.absent:
			finish(&look{why: "its page is being reloaded; try again"})
		default:
			g.counts.reads++
			var over func()
			answered := false
			stop = func() {
				late.Stop()
				if over != nil {
					over()
				}
			}
			over = r.page.src.read(r.own(asked.Key), r.own(asked.URI), asked.Params, func(answer reply) {
				answered = true
				finish(g.lookAt(uri, revision, r.page, answer))
			})
			if answered { // at once: then stop has not known over
				over()
			}
		}
	})
	return func() {
		if !ended {
			ended = true
			stop()
		}
	}
}

// lookAt takes what a page has answered. Contents that are different from those of the same revision are a change that
// the page has not told.
func (g *Gateway) lookAt(uri string, revision int64, p *Page, r reply) *look {
	if r.failure != "" {
		why := r.detail
		if why == "" {
			why = "the page could not be read"
		}
		return &look{why: why}
	}
	l := decodeContents(uri, r.contents)
	if l.why != "" {
		return l
	}
	l.epoch, l.count = p.epoch, r.revision
	l.revision = g.tools.found(uri, revision, l.hash)
	return l
}

// decodeContents reads the JSON text of MCP's contents. What is several parts, or bytes, is one text all the same, in
// which each part has a line of its own before it.
func decodeContents(uri string, contents []byte) *look {
	v, err := wire.Parse(contents, maxDepth)
	if err != nil || v.Kind() != wire.Array {
		return &look{why: link.NoContents}
	}
	l := &look{uri: uri, hash: sha256.Sum256(v)}
	var texts []string
	alone := true
	for part := range v.Elements {
		text, isText := part.Get("text").Text()
		mime, _ := part.Get("mimeType").Text()
		blob, _ := part.Get("blob").Text()
		own, _ := part.Get("uri").Text()
		switch {
		case isText:
			texts = append(texts, partLine(own, mime, "")+"\n"+text)
			if alone = alone && len(texts) == 1; alone {
				l.text = text
			}
		case strings.HasPrefix(mime, "image/"):
			l.images = append(l.images, imageContent{"image", blob, mime})
		default:
			alone = false
			texts = append(texts, partLine(own, mime, "bytes, which are not shown: "+wire.Itoa(len(blob)*3/4)))
		}
	}
	if !alone {
		l.text = strings.Join(texts, "\n")
	}
	return l
}

// maxDepth is how deep contents, and results of tools, may be nested.
const maxDepth = 64

type imageContent struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
}

// partLine is the line before one of several parts.
func partLine(uri, mime, note string) string {
	return "--- " + line(struct {
		URI  string `json:"uri"`
		MIME string `json:"mimeType,omitempty"`
		Note string `json:"note,omitempty"`
	}{uri, mime, note})
}
