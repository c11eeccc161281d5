package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"unicode"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

const (
	// ShownPath is the path of what a page shows, at its origin.
	ShownPath = bridge.GatewayPath + "shown"
	// PartsPath begins the paths of the parts that the user has chosen. The name of a part follows.
	PartsPath = bridge.GatewayPath + "parts/"
	// MaxTitle bounds a title, in bytes.
	MaxTitle = 1 << 10
)

// Shorten cuts a text to at most so many bytes, between characters.
func Shorten(text string, bytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytes)], "")
}

// shown is the resource as agents see it: its title names its page.
func (o *Offer) shown() bridge.Resource {
	if !o.described {
		o.described = true
		o.Page.catalog.described++
		o.describe()
	}
	r := o.Resource
	r.Title, r.Meta = o.title, o.meta
	return r
}

func (o *Offer) describe() {
	p := o.Page
	p.locate()
	// The list has a long name only once. Otherwise 16 MiB of an origin's descriptors would be 32
	// in it and its copies.
	o.words = o.titled()
	o.title = Shorten(o.words, MaxTitle) + p.where
	if SaysOffered(o.Resource.Name) {
		o.Resource.Name = notOffered
	}
	if o.meta = p.meta; len(o.Resource.Meta) > 0 {
		o.meta = withMeta(o.Resource.Meta, p.tabMeta())
	}
}

// locate makes the text that follows each title of the page's resources, and their _meta. Both are
// the same for all resources of the page.
func (p *Page) locate() {
	if p.where != "" {
		return
	}
	host := p.Origin
	if u, err := url.Parse(p.Origin); err == nil && u.Host != "" {
		host = u.Host
	}
	p.where = " - " + p.Caption() + " (" + p.Whereabouts() + ", " + host + ")"
	p.meta = withMeta(nil, p.tabMeta())
}

func (p *Page) tabMeta() map[string]any {
	return map[string]any{metaTab: p.InTab.Number, metaKey: p.InTab.Key, metaSegment: p.Segment()}
}

// Redescribe updates the title and _meta of all offers of a page.
func (c *Catalog) Redescribe(p *Page) {
	p.where = ""
	for _, o := range p.Offers {
		o.described = false
		c.invalidateOwned(o)
	}
	c.updateEntries()
}

// Caption is the page's title, for people, in at most 80 characters.
func (p *Page) Caption() string {
	title := cmp.Or(strings.Join(strings.Fields(p.Title), " "), p.URL)
	if SaysOffered(title) {
		title = p.Origin
	}
	if runes := []rune(title); len(runes) > 80 {
		title = string(runes[:77]) + "..."
	}
	return title
}

// Keys of _meta that let a program tell tabs apart.
const (
	metaTab = "pagewire/tab"    // a number
	metaKey = "pagewire/tabKey" // the tab's key, the same for the tab's life
	// N or N.FRAME in the URI's form /.pagewire/tab/N/
	metaSegment = "pagewire/tabSegment"
)

// withMeta adds members to a _meta.
func withMeta(meta []byte, more map[string]any) []byte {
	all := map[string]any{}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(meta, &members) // meta may be empty
	for name, value := range members {
		all[name] = value
	}
	maps.Copy(all, more)
	return []byte(live.Line(all))
}

// titled is the title of an offer, without its page. A page's may not say that the user offers it.
func (o *Offer) titled() string {
	uri, title := o.Resource.URI, cmp.Or(o.Resource.Title, o.Resource.Name)
	switch part, isPart := strings.CutPrefix(uri, o.Page.Origin+PartsPath); {
	case o.Page.Shown && isPart:
		return "A part of the page (offered by the user): " + part
	case o.Page.Shown:
		return "What the page shows (offered by the user)"
	case SaysOffered(title + o.Page.where):
		return notOffered
	}
	return title
}

// notOffered is in place of what SaysOffered.
const notOffered = "a resource of the page"

// SaysOffered reports whether a page's words say that the user offers something.
func SaysOffered(words string) bool {
	return strings.Contains(strings.Map(onlyLetters, words), "offeredbytheuser")
}

func onlyLetters(r rune) rune {
	if unicode.IsLetter(r) {
		return unicode.ToLower(r)
	}
	return -1
}

// standsBack reports whether the page offers resources of its own, so that what it shows is not
// listed.
func (o *Offer) standsBack() bool {
	p := o.Page
	if !p.Shown || o.Resource.URI != p.Origin+ShownPath {
		return false
	}
	for q := range p.InTab.pages {
		if !q.Shown && q.Frame == p.Frame && q.Origin == p.Origin && len(q.Offers) > 0 {
			return true
		}
	}
	return false
}

// invalidateShown marks what a page shows as out of date, since that stands back once the page
// offers something of its own.
func (c *Catalog) invalidateShown(p *Page) {
	if p.Shown || len(p.Offers) > 1 {
		return
	}
	for q := range p.InTab.pages {
		if q.Shown {
			for _, o := range q.Offers {
				c.invalidateOwned(o)
			}
		}
	}
}
