package quota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// many are n entries of an origin.
func many(origin string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s/%03d", origin, i))
	}
	return list
}

// origin is what comes before an entry's number.
func origin(entry string) string { return entry[:len(entry)-len("/000")] }

// A site that needs no more than its share has all of its entries, wherever they are in the list.
// The others share the rest, and each keeps its first ones.
func TestShares(t *testing.T) {
	const large, small = "https://aaa.example", "https://small.test"
	all := append(many(large, 600), many(small, 20)...)
	want := append(all[:80:80], all[600:]...)
	if got := Shares(all, 100, origin); !slices.Equal(got, want) {
		t.Errorf("of 100 places it gets %q", got)
	}
	if got := Shares(all, 620, origin); !slices.Equal(got, all) {
		t.Errorf("of enough places it gets %d", len(got))
	}
	if got := Shares(all, 0, origin); len(got) > 0 {
		t.Errorf("without a place it gets %q", got)
	}
	// All subdomains together are one site, and share its places.
	all = many(small, 40)
	for n := range 50 {
		all = append(all, many(fmt.Sprintf("https://s%d.evil.example:8080", n), 10)...)
	}
	if got := Shares(all, 100, origin); !slices.Equal(got[:40], all[:40]) || len(got) != 100 ||
		!slices.Contains(got, "https://s49.evil.example:8080/000") {
		t.Errorf("beside many subdomains it gets %q", got)
	}
}

// For any list all places are taken, the order stays, and no site gets two places more than a site
// that needs more.
func TestRandomShares(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var all []string
		needs, got := map[string]int{}, map[string]int{}
		for h := range 1 + r.IntN(3) {
			for s := range 1 + r.IntN(6) {
				of := many(fmt.Sprintf("https://h%d.s%d.example", h, s), r.IntN(30))
				needs[fmt.Sprintf("s%d.example", s)] += len(of)
				all = append(all, of...)
			}
		}
		most := r.IntN(100)
		kept := Shares(all, most, origin)
		for _, entry := range kept {
			got[Site(origin(entry))]++
		}
		if len(kept) != min(most, len(all)) || !slices.IsSorted(kept) {
			t.Fatalf("seed %d: %d places of %d are taken, by %q", seed, len(kept), most, kept)
		}
		for a, n := range got {
			for b, need := range needs {
				if got[b] < need && n > got[b]+1 {
					t.Fatalf("seed %d: %s has %d of %d, and %s has %d", seed, b, got[b], need, a, n)
				}
			}
		}
	}
}
