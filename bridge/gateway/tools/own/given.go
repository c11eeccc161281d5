//go:build !js

package own

import (
	"crypto/sha256"
	"fmt"
)

// maxGiven is how many gifts are known: some 150 KB, for all who have no memory.
const maxGiven = 1024

// given is what was given last to those who have no memory. They cannot be told apart, so what one of them has is known
// only by what it names: a revision of a resource, or of a part, that was told with just these contents. The zero value
// is empty.
type given struct {
	hashes map[gift][32]byte // of the contents
	order  []gift
}

// A gift is a part of a URI, or all of it, under a revision. It is a hash, since an agent names parts of any length.
type gift [32]byte

func giftOf(uri, part string, revision int64) gift {
	return sha256.Sum256(fmt.Appendf(nil, "%d %q %q", revision, uri, part))
}

// add notes that somebody was given a part of a URI, or with "" all of it, under a revision.
func (g *given) add(uri, part string, revision int64, hash [32]byte) {
	if g.hashes == nil {
		g.hashes = map[gift][32]byte{}
	}
	one := giftOf(uri, part, revision)
	if _, known := g.hashes[one]; !known {
		if len(g.order) == maxGiven {
			delete(g.hashes, g.order[0])
			g.order = g.order[1:]
		}
		g.order = append(g.order, one)
	}
	g.hashes[one] = hash
}

// again notes that what somebody was given under one revision goes by a later one, too.
func (g *given) again(uri string, revision, later int64) {
	if hash, ok := g.hashes[giftOf(uri, "", revision)]; ok {
		g.add(uri, "", later, hash)
	}
}

// has reports whether who was told a revision of a URI has these contents, or that part of them.
func (g *given) has(uri, part string, revision int64, hash [32]byte) bool {
	for _, part := range []string{"", part} {
		if was, ok := g.hashes[giftOf(uri, part, revision)]; ok && was == hash {
			return true
		}
	}
	return false
}
