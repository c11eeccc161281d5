package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// maxPages bounds the number of pages of a list that are full by entries, and of pages that are
// full by bytes. The TypeScript client 2.4 gives up after 64 pages, and go-sdk reads at most 16 MiB
// on a line. So a page may grow, and a longer list is divided into 24ths: it has 25 or 26 pages, at
// any size. If entries of 256 KiB leave a quarter of pages of 1 MiB empty, a list has 56. A gateway
// takes 64 MiB from all its pages, which makes pages of 3 MiB.
const maxPages = 24

// A listPage is one page of a list that is being written.
type listPage struct {
	text        wire.Text
	first       int // where the entries begin in text
	count       int
	size, bytes int // its bounds
}

// newPage begins a page after text. The whole list has the given number of entries, of that many
// bytes together.
func (e *Engine) newPage(text wire.Text, entries, bytes int) *listPage {
	return &listPage{
		text: text, first: len(text),
		size: max(e.opt.PageSize, entries/maxPages), bytes: max(e.opt.PageBytes, bytes/maxPages),
	}
}

// add keeps the text with one more entry if it fits, and reports whether it does. The first entry
// always fits.
func (p *listPage) add(text wire.Text) bool {
	if p.count > 0 && (p.count == p.size || len(text)-p.first > p.bytes) {
		return false
	}
	p.text = text
	p.count++
	return true
}

// put keeps the text with an entry that does not count.
func (p *listPage) put(text wire.Text) { p.text, p.first = text, len(text) }

// cursorOf is the cursor of a request, or "".
func cursorOf(r *request) (string, *wire.Error) {
	v := r.params.Get("cursor")
	cursor, ok := v.Text()
	if v.Kind() > wire.Null && !ok {
		return "", invalidParams("cursor must be a string")
	}
	return cursor, nil
}

func (e *Engine) listResources(r *request) *wire.Error {
	return e.listing(r, `"resources":`, false)
}

func (e *Engine) listTemplates(r *request) *wire.Error {
	return e.listing(r, `"resourceTemplates":`, true)
}

func (e *Engine) listing(r *request, key string, templates bool) *wire.Error {
	cursor, fault := cursorOf(r)
	if fault != nil {
		return fault
	}
	p := e.newPage(e.result(r).Raw(key).Raw(`[`), e.registry.Len(), e.registry.Bytes())
	next, err := e.registered(templates, cursor, func(entry *resource.Entry) bool {
		if r.port.hides(entry.URI) {
			return true
		}
		if templates {
			return p.add(describe(p.text.Next(), "uriTemplate", entry.Pattern, &entry.Resource))
		}
		return p.add(describe(p.text.Next(), "uri", entry.URI, &entry.Resource))
	})
	if err != nil {
		return refused(r.modern, "", err)
	}
	e.send(r.port, e.listed(r, p.text.Raw(`]`), next))
	return nil
}

// registered is Registry.Page, with cursors that no agent can read or make.
func (e *Engine) registered(templates bool, cursor string, take func(*resource.Entry) bool) (
	next string, err error) {
	seals := restricts && e.opt.SealCursor != nil
	if seals && cursor != "" {
		if cursor = e.opt.OpenCursor(cursor); cursor == "" {
			return "", &resource.Error{Reason: resource.BadCursor, Message: "Invalid cursor"}
		}
	}
	next, err = e.registry.Page(templates, cursor, take)
	if seals && next != "" {
		next = e.opt.SealCursor(next)
	}
	return next, err
}

// listed completes the answer that holds one page of a list.
func (e *Engine) listed(r *request, text wire.Text, next string) wire.Text {
	if next != "" {
		text = text.Raw(`,"nextCursor":`).Str(next)
	}
	if r.modern {
		text = text.Raw("," + cacheable)
	}
	return e.closeResult(r, text)
}
