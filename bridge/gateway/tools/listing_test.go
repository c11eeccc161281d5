package tools

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/pagewire/pagewire/bridge/internal/quota"
)

func entriesOf(origin string, page, n, bytes int) (entries []Entry) {
	for i := range n {
		entries = append(entries, Entry{Name: origin + " " + strconv.Itoa(page) + " " + strconv.Itoa(i), Origin: origin,
			Page: page, Bytes: bytes})
	}
	return entries
}

// counted calls Choose, and counts the listed tools by origin and by page, and their places.
func counted(l *Listing, entries []Entry) (origins map[string]int, pages map[int]int, places int) {
	origins, pages = map[string]int{}, map[int]int{}
	for i, chosen := range l.Choose(entries) {
		if chosen {
			origins[entries[i].Origin]++
			pages[entries[i].Page]++
			places += entries[i].places()
		}
	}
	return origins, pages, places
}

// If a page needs no more than its share, all its tools are listed. The others share the rest.
func TestShares(t *testing.T) {
	const small, large = "https://small.example", "https://large.test"
	entries := append(entriesOf(small, 1, 30, 100), entriesOf(large, 2, 500, 100)...)
	origins, _, places := counted(NewListing(100), entries)
	if origins[small] != 30 || origins[large] != 70 || places != 100 {
		t.Errorf("%v are listed", origins)
	}
	// All subdomains together are one site, and share its places.
	entries = entriesOf("https://bank.test", 1, 40, 100)
	for n := range 50 {
		entries = append(entries, entriesOf("https://s"+strconv.Itoa(n)+".evil.example:8080", 2+n, 10, 100)...)
	}
	origins, _, places = counted(NewListing(100), entries)
	if origins["https://bank.test"] != 40 || places != 100 || origins["https://s7.evil.example:8080"] > 2 {
		t.Errorf("%v are listed", origins)
	}
	// Pages of an origin share its places for plain names. Names with a tab come after all of these.
	entries = append(entriesOf(large, 1, 90, 100), entriesOf(large, 2, 20, 100)...)
	for _, e := range entriesOf(large, 3, 20, 100) {
		e.Tabbed = true
		entries = append(entries, e)
	}
	_, pages, _ := counted(NewListing(120), entries)
	if pages[1] != 90 || pages[2] != 20 || pages[3] != 10 {
		t.Errorf("%v are listed", pages)
	}
	_, pages, _ = counted(NewListing(50), entries)
	if pages[1] != 30 || pages[2] != 20 || pages[3] != 0 {
		t.Errorf("%v are listed", pages)
	}
}

// A long description takes several places. A tool that is longer than the list is left out, and the others are not.
func TestPlacesOfLongTools(t *testing.T) {
	const origin = "https://app.example"
	l := NewListing(100)
	entries := append(entriesOf(origin, 1, 1, 101*PlaceBytes), entriesOf(origin, 2, 60, 2*PlaceBytes)...)
	_, pages, places := counted(l, entries)
	if pages[1] != 0 || pages[2] != 50 || places != 100 {
		t.Errorf("%v are listed, in %d places", pages, places)
	}
}

// Called tools are kept first, then listed tools. Tools that are gone are forgotten.
func TestListedStays(t *testing.T) {
	const origin = "https://app.example"
	l := NewListing(50)
	old := entriesOf(origin, 1, 50, 100)
	l.Choose(old)
	more := append(entriesOf(origin, 1, 80, 100)[50:], old...)
	for i, chosen := range l.Choose(more) {
		if chosen != (i >= 30) {
			t.Fatalf("%s is listed: %t", more[i].Name, chosen)
		}
	}
	l.Called(more[7].Name)
	chosen := l.Choose(more)
	if !chosen[7] || chosen[8] || chosen[len(more)-1] {
		t.Errorf("what was called is listed: %t", chosen[7])
	}
	l.Choose(nil)
	if len(l.before) > 0 {
		t.Errorf("%d tools that are gone are remembered", len(l.before))
	}
}

// For any tools, the list is as full as it can be, and no site gets two places more than a site that needs more.
func TestRandomListings(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := NewListing(1 + r.IntN(100))
		for range 5 {
			var entries []Entry
			sites := map[string]int{}
			for page := range 1 + r.IntN(12) {
				origin := "https://h" + strconv.Itoa(r.IntN(3)) + ".s" + strconv.Itoa(r.IntN(4)) + ".example"
				for _, e := range entriesOf(origin, page, r.IntN(30), 100) {
					e.Tabbed = r.IntN(3) == 0
					entries = append(entries, e)
					sites[quota.Site(origin)]++
				}
			}
			r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
			got := map[string]int{}
			_, _, places := counted(l, entries)
			for i, chosen := range l.Choose(entries) {
				if chosen {
					got[quota.Site(entries[i].Origin)]++
				}
			}
			if places != min(l.places, len(entries)) {
				t.Fatalf("seed %d: %d places of %d are taken, by %d", seed, places, l.places, len(entries))
			}
			for a, n := range got {
				for b := range sites {
					if got[b] < sites[b] && n > got[b]+1 {
						t.Fatalf("seed %d: %s has %d of %d, and %s has %d", seed, b, got[b], sites[b], a, n)
					}
				}
			}
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	var entries []Entry
	for page := range 200 {
		for _, e := range entriesOf("https://app.example", page, 50, 1000) {
			e.Tabbed = page > 0
			entries = append(entries, e)
		}
	}
	l := NewListing(1000)
	for b.Loop() {
		l.Choose(entries)
	}
}
