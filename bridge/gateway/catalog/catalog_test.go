package catalog

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
)

const app = "https://app.example"

// A told listener has what it was told of: the entries, by key. It finds keys only.
type told map[string]*Entry

func (l told) Find(uri string) (string, bool) { return uri, l[uri] != nil }

func (l told) Added(e *Entry) error {
	if l[e.Resource.URI] != nil {
		panic(e.Resource.URI + " is added twice")
	}
	l[e.Resource.URI] = e
	return nil
}

func (l told) Changed(before, now *Entry) {
	if l[now.Resource.URI] != before {
		panic(now.Resource.URI + " did not lead there")
	}
	l[now.Resource.URI] = now
}

func (l told) Removed(e *Entry) {
	if l[e.Resource.URI] != e {
		panic(e.Resource.URI + " did not lead there")
	}
	delete(l, e.Resource.URI)
}

func (l told) Withdrawn(*Offer)   {}
func (l told) OwnerChanged(*Page) {}
func (l told) PagesChanged()      {}

func arrive(c *Catalog, info PageInfo) *Page {
	p := c.NewPage(info, nil)
	c.Attach(&p)
	c.Arrive(&p, []string{info.Tab})
	return &p
}

// A listener that knows what it was told knows all entries, and nothing stays of pages that are
// gone.
func TestListenerKnowsAllEntries(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(2, seed))
		l := told{}
		c := New(l)
		pages := map[*Page]bool{}
		var did []string
		for range 80 {
			uri := app + "/" + strconv.Itoa(random.IntN(3))
			info := PageInfo{Tab: strconv.Itoa(random.IntN(4)), Origin: app, Window: strconv.Itoa(random.IntN(2))}
			info.Frame = []string{"", "", "1"}[random.IntN(3)]
			if info.Shown = random.IntN(4) == 0; info.Shown {
				uri = app + ShownPath
			}
			step := random.IntN(7)
			did = append(did, fmt.Sprint(step, info.Tab, info.Frame, info.Shown, uri))
			var p *Page
			for p = range pages {
				break
			}
			switch {
			case step < 2 || p == nil:
				p = arrive(c, info)
				pages[p] = true
				c.Offer(p, bridge.Resource{URI: uri, Name: "a"})
			case step == 2 && !p.Life().Left() && p.Shown == info.Shown:
				c.Offer(p, bridge.Resource{URI: uri, Name: strconv.Itoa(random.IntN(2))})
			case step == 3:
				c.Withdraw(p, uri)
			case step == 4:
				c.Focus(info.Tab, bridge.Time(len(did)))
			case step == 5 && p.Life() == Here:
				c.Leave(p, true)
				c.Yield(p)
			case step == 6:
				c.Leave(p, false)
				c.Remove(p)
				delete(pages, p)
			}
			for key, e := range c.entries {
				if l[key] != e || c.places[key] == nil || c.places[key].offers[0].Page != e.Page || len(c.changed) > 0 {
					t.Fatalf("seed %d: %s leads elsewhere\n%s", seed, key, strings.Join(did, "\n"))
				}
			}
			if len(l) != len(c.entries) || len(l) != len(c.places) {
				t.Fatalf("seed %d: it knows %d of %d entries", seed, len(l), len(c.entries))
			}
		}
		for p := range pages {
			c.Leave(p, false)
			c.Remove(p)
		}
		if n := len(c.places) + len(c.tabs.byKey) + len(c.entries) + len(c.attached) + len(l); n != 0 {
			t.Fatalf("seed %d: %d places, tabs, pages and entries are left", seed, n)
		}
	}
}

// The numbers of tabs that are gone are kept up to a bound. No number is given to another tab.
func TestNumbersHaveABound(t *testing.T) {
	c := New(told{})
	arrive(c, PageInfo{Tab: "stays", Origin: app})
	for n := range 3 * maxNumbers {
		p := arrive(c, PageInfo{Tab: "tab" + strconv.Itoa(n), Origin: app})
		if got := p.InTab.Number; got != n+2 {
			t.Fatalf("tab %d has the number %d", n, got)
		}
		c.Leave(p, false)
		c.Remove(p)
	}
	numbers := c.tabs.numbers
	if len(numbers) > maxNumbers {
		t.Errorf("the numbers of %d tabs are kept", len(numbers))
	}
	for key, want := range map[string]int{"stays": 1, "tab29999": 30_001} {
		if numbers[key] != want {
			t.Errorf("%s has the number %d, not %d", key, numbers[key], want)
		}
	}
}
