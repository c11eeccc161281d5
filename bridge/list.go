package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// maxPages is into how many pages of one kind, full by number or by bytes, a list is cut at most: the TypeScript client
// gives a list up that has more than 64 pages. With both kinds, and where 256 KiB do not fit any more on a page of 1
// MiB, these are 56. The 64 MiB that a gateway takes from all its pages make pages of 3 MiB then, and the Go client
// reads 16 MiB.
const maxPages = 24

// A page of a list is being written.
type page struct {
	text        wire.Text
	first       int // where in text the entries begin
	count       int
	size, bytes int // what it may hold
}

// newPage begins a page behind text, of a list of so many entries of so many bytes.
func (e *Engine) newPage(text wire.Text, entries, bytes int) *page {
	return &page{
		text: text, first: len(text),
		size: max(e.opt.PageSize, entries/maxPages), bytes: max(e.opt.PageBytes, bytes/maxPages),
	}
}

// begin returns the text for an entry to be appended to.
func (p *page) begin() wire.Text {
	if p.count > 0 {
		return p.text.Raw(`,`)
	}
	return p.text
}

// take takes the text with an entry, and reports whether that fits. The first one does.
func (p *page) take(text wire.Text) bool {
	if p.count > 0 && (p.count == p.size || len(text)-p.first > p.bytes) {
		return false
	}
	p.text = text
	p.count++
	return true
}

// cursorOf is the cursor of a request, "" where there is none.
func cursorOf(r *request) (string, *wire.Error) {
	v := r.params.Get("cursor")
	cursor, ok := v.Text()
	if len(v) > 0 && !ok {
		return "", invalidParams("cursor must be a string")
	}
	return cursor, nil
}

func (e *Engine) listResources(r *request) *wire.Error { return e.listing(r, `"resources":`, false) }

func (e *Engine) listTemplates(r *request) *wire.Error {
	return e.listing(r, `"resourceTemplates":`, true)
}

func (e *Engine) listing(r *request, key string, templates bool) *wire.Error {
	cursor, fault := cursorOf(r)
	if fault != nil {
		return fault
	}
	p := e.newPage(e.result(r).Raw(key).Raw(`[`), e.registry.Len(), e.registry.Bytes())
	next, err := e.registry.Page(templates, cursor, func(entry *resource.Entry) bool {
		if r.port.hides(entry.URI) {
			return true
		}
		if templates {
			return p.take(describe(p.begin(), "uriTemplate", entry.Pattern, &entry.Resource))
		}
		return p.take(describe(p.begin(), "uri", entry.URI, &entry.Resource))
	})
	if err != nil {
		return refused(r.modern, "", err)
	}
	e.send(r.port, e.listed(r, p.text.Raw(`]`), next))
	return nil
}

// listed completes the answer that holds one page of a list.
func (e *Engine) listed(r *request, text wire.Text, next string) wire.Text {
	if next != "" {
		text = text.Raw(`,"nextCursor":`).Str(next)
	}
	if r.modern {
		text = text.Raw("," + cacheable)
	}
	return e.end(r, text)
}
