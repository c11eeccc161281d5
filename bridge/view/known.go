package view

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
)

// A failure is an error whose value is its text. Package errors would bring in reflection, for its Is and As.
type failure string

func (f failure) Error() string { return string(f) }

const errOpen = failure("view: a View with this ID is open already: give each its own")

// known holds the URIs that the server has listed, and the URIs of its answers to reads. Only these can be subscribed
// to (ext-apps#659, URI validation). The engine has them as registered resources.
type known struct {
	seen  map[string]bool
	order []string // oldest first

	fresh   bool   // the list has not changed since it was last asked for
	listing bool   // a request for it is open
	pages   int    // of that list so far
	cursor  string // of the page that is asked for
	listID  string // of the request
	listBy  Time   // when the Host stops waiting for it
}

func (k *known) init() { k.seen = map[string]bool{} }

func (h *Host) knows(uri string) bool { return h.known.seen[uri] }

// canList reports whether the server's list may have unknown URIs.
func (h *Host) canList() bool { return !h.down && (h.listing || !h.fresh) }

// Learn adds a URI of the server that the home has seen in a list or a read elsewhere.
func (h *Host) Learn(now Time, uri string) {
	h.enter(now)
	h.learn(uri)
	h.leave()
}

func (h *Host) learn(uri string) {
	if h.seen[uri] {
		return
	}
	if len(h.seen) >= h.opt.MaxKnown && !h.forgetOne() {
		return
	}
	// The engine refuses text that is not a URI; templates are refused here.
	for i := range len(uri) {
		if uri[i] == '{' || uri[i] == '}' {
			return
		}
	}
	if h.engine.Register(h.now, bridge.Resource{URI: uri, Name: uri, Size: -1}) == nil {
		h.seen[uri] = true
		h.order = append(h.order, uri)
	}
}

// forgetOne makes room for one more URI, unless all of them are watched.
func (h *Host) forgetOne() bool {
	for i, uri := range h.order {
		if h.sources[uri] == nil {
			h.order = slices.Delete(h.order, i, i+1)
			delete(h.seen, uri)
			h.engine.Unregister(h.now, uri)
			return true
		}
	}
	return false
}

// learnFrom learns the URIs in the members of an array: the resources of a list, the contents of a read.
func (h *Host) learnFrom(list bridge.JSON) {
	list.Elements(func(item bridge.JSON) bool {
		if uri, ok := item.Get("uri").Text(); ok {
			h.learn(uri)
		}
		return true
	})
}

// list asks for the server's list, page by page from cursor on.
func (h *Host) list(cursor string) {
	if cursor == "" {
		if h.listing {
			return
		}
		h.listing, h.fresh, h.pages = true, true, 0
	}
	h.pages++
	h.cursor = cursor
	h.listBy = h.now + h.opt.ReadTimeout
	h.stats.Lists++
	params := bridge.Text(nil)
	if cursor != "" {
		params = params.Raw(`"cursor":`).Str(cursor)
	}
	h.listID = h.ask("resources/list", params, pending{kind: askList})
}

func (h *Host) answerList(m bridge.Incoming) {
	if !h.listing {
		return
	}
	h.learnFrom(m.Result.Get("resources"))
	// A server may have one resource on each page, or endless pages.
	if next, _ := m.Result.Get("nextCursor").Text(); next != "" && next != h.cursor && h.pages < h.opt.MaxKnown {
		h.list(next)
		return
	}
	// A failed list is not asked for again either: otherwise each subscription would ask for it.
	h.listing = false
	h.listed()
}

// expireList stops waiting for a list.
func (h *Host) expireList() {
	if h.listing && h.now >= h.listBy {
		h.drop(h.listID) // its late answer would be taken for that of the next list
		h.answerList(bridge.Incoming{})
	}
}
