package quota

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// Shares returns most entries of a list that has more, in the list's order. Each site has the same
// share, and divides it between its origins. Unused places go to the others. An origin's places go
// to those of its entries that come first.
func Shares[T any](list []T, most int, origin func(T) string) []T {
	return Within(list, most, origin, func(T) int { return 1 })
}

// Within is Shares for entries of different costs, whose sum is at most most. An entry for which
// there is no room leaves its place to those that cost less.
func Within[T any](list []T, most int, origin func(T) string, cost func(T) int) []T {
	costs, order, sum := make([]int, len(list)), make([]int, len(list)), 0
	for i, v := range list {
		costs[i], order[i] = cost(v), i
		sum += costs[i]
	}
	if sum <= most {
		return list
	}
	sum = 0
	chosen := slices.DeleteFunc(BySite(order, func(i int) string { return origin(list[i]) },
		func(i int) int { return costs[i] }), func(i int) bool {
		if sum+costs[i] > most {
			return true
		}
		sum += costs[i]
		return false
	})
	slices.Sort(chosen)
	kept := make([]T, len(chosen))
	for n, i := range chosen {
		kept[n] = list[i]
	}
	return kept
}

// BySite returns a list in an order of which any beginning is divided fairly between sites, and in
// each site between its origins. An origin's entries keep their order.
func BySite[T any](list []T, origin func(T) string, cost func(T) int) []T {
	var sites [][]T
	origins := Grouped(list, origin)
	for _, of := range Grouped(origins, func(list []T) string { return Site(origin(list[0])) }) {
		sites = append(sites, Fair(of, cost))
	}
	return Fair(sites, cost)
}

// Site returns the last two labels of the host. The origins of one owner mostly share them, and a
// page can have frames of any number of subdomains. If two owners share a site, as below a public
// suffix, each origin still has its share.
func Site(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return origin
	}
	labels := strings.Split(u.Hostname(), ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}

// Grouped splits a list by a key, in order of keys. The parts keep the list's order, and no part is
// empty.
func Grouped[K cmp.Ordered, T any](list []T, key func(T) K) [][]T {
	groups := map[K][]T{}
	var keys []K
	for _, v := range list {
		k := key(v)
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], v)
	}
	slices.Sort(keys)
	all := make([][]T, len(keys))
	for n, k := range keys {
		all[n] = groups[k]
	}
	return all
}

// Fair merges lists and keeps the order of each. In any beginning of the result, all lists that
// have more entries have the same sum of costs, give or take one entry.
func Fair[T any](lists [][]T, cost func(T) int) []T {
	type ranked struct {
		value T
		sum   int // of costs, in its own list
	}
	var all []ranked
	for _, list := range lists {
		sum := 0
		for _, v := range list {
			sum += cost(v)
			all = append(all, ranked{v, sum})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.sum, b.sum) })
	merged := make([]T, len(all))
	for i := range all {
		merged[i] = all[i].value
	}
	return merged
}
