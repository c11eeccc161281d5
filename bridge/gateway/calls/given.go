package calls

import (
	"crypto/sha256"
	"fmt"
)

// maxGiven bounds the gifts, to about 150 KB for all agents without a memory.
const maxGiven = 1024

// given records the last gifts to agents without a memory. The gateway cannot distinguish these
// agents. So an agent has a version only if it names a revision that was given with exactly these
// contents. The zero value is empty.
type given struct {
	hashes map[gift][32]byte // of the contents
	order  []gift
}

// A gift is a part of a URI under a revision. It is a hash, since an agent can name parts of any
// length.
type gift [32]byte

func giftOf(uri, part string, revision int64) gift {
	return sha256.Sum256(fmt.Appendf(nil, "%d %q %q", revision, uri, part))
}

// add notes that a part of a URI was given under a revision. A part of "" is all of it.
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

// again notes that a whole URI that was given under one revision is also current under a later one.
func (g *given) again(uri string, revision, later int64) {
	if hash, ok := g.hashes[giftOf(uri, "", revision)]; ok {
		g.add(uri, "", later, hash)
	}
}

// has reports whether the contents with a hash, all or that part of them, were given under a
// revision.
func (g *given) has(uri, part string, revision int64, hash [32]byte) bool {
	for _, part := range []string{"", part} {
		if was, ok := g.hashes[giftOf(uri, part, revision)]; ok && was == hash {
			return true
		}
	}
	return false
}
