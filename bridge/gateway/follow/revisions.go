package follow

import (
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge/coalesce"
)

// Revisions count the changes of URIs that agents were given or wait for. So a wait misses no
// change between a read and itself, and reminders know which versions are old.
//
// A revision is the time of the change in microseconds since 1970, or one more than the last. So
// revisions also grow across restarts of the gateway, and one revision covers all resources. In
// milliseconds, a revision of an earlier gateway could equal one of this gateway, and was answered
// with "unchanged". Revisions stay below 2^53, above which JavaScript rounds.

// A count is the part of a watch whose changes are counted.
type count struct {
	uri      string
	revision int64     // of the last change; it only grows
	used     time.Time // when a request needed it last
	// asked is set from Track to the end of the count's reports, or their failure; ready, once the
	// page reports every change. While it is asked and not ready, then has who waits for that.
	asked, ready bool
	then         []func(why string)
	// holders counts the agents that were given the URI, its followers, and held. The count stays
	// while there is one. held counts Hold's callers.
	holders, held int
	followers     map[Follower]bool
	// waits counts the calls of Await under way: the count stays for them, too.
	waits int
	// hash is the hash of the contents at this revision, if known is set.
	hash  [32]byte
	known bool
	// key names the entry of the catalog that answered when the watch was last led to a page.
	key string
	// item is a change that the pace delays.
	item coalesce.Item[*count]
}

const (
	// trackFor is how long a resource is tracked after a tool's last request for it, if no agent
	// holds it.
	trackFor = 15 * time.Minute
	// followFor is how long after the last request the next change ends the watch. Agents' versions
	// are known to be old then, so a page that changes all day need not report it all day.
	followFor = time.Minute
	// manyCounted is the number of counted URIs above which followFor replaces trackFor. One agent can
	// ask for any number under a template, and must leave room to others.
	manyCounted = 5000
	// expireEvery is how often Track looks for what is no longer tracked.
	expireEvery = time.Second
)

func (b *Books) count(uri string) *count {
	if w := b.watches[uri]; w != nil {
		return w.count
	}
	return nil
}

func (b *Books) makeCount(uri string) *count {
	w := b.watch(uri)
	if w.count == nil {
		w.count = &count{uri: uri}
		w.count.item.Value = w.count
	}
	return w.count
}

// Clock returns the last revision.
func (b *Books) Clock() int64 { return b.clock }

// Advance returns a new revision, greater than all before. It belongs to no resource unless the
// caller gives it one.
func (b *Books) Advance() int64 {
	b.clock = max(b.clock+1, b.source.Now().UnixMicro())
	return b.clock
}

// Revision returns the revision of a tracked resource's last change, and 0 for any other resource.
func (b *Books) Revision(uri string) int64 {
	if c := b.count(uri); c != nil {
		return c.revision
	}
	return 0
}

// Found notes the hash of contents that were read, and revision, the URI's revision before the
// read. It returns the revision of these contents: a new one if earlier contents at that revision
// differ.
func (b *Books) Found(uri string, revision int64, hash [32]byte) int64 {
	c := b.count(uri)
	if c == nil || c.revision != revision {
		return revision
	}
	if c.known && c.hash != hash {
		b.change(c)
	}
	c.hash, c.known = hash, true
	return c.revision
}

func (b *Books) change(c *count) {
	c.revision, c.known = b.Advance(), false
	b.source.Changed()
}

// Len returns the number of tracked resources.
func (b *Books) Len() (n int) {
	for _, w := range b.watches {
		if w.count != nil {
			n++
		}
	}
	return n
}

// Counted returns the number of URIs whose changes are counted.
func (b *Books) Counted() int { return b.counted }

// retain counts one more holder of a URI.
func (b *Books) retain(uri string) {
	if c := b.count(uri); c != nil {
		c.holders++
	}
}

// Follow adds a follower of a tracked resource, until Unfollow.
func (b *Books) Follow(uri string, f Follower) {
	if c := b.count(uri); c != nil && !c.followers[f] {
		if c.followers == nil {
			c.followers = map[Follower]bool{}
		}
		c.followers[f] = true
		c.holders++
	}
}

// Unfollow ends Follow.
func (b *Books) Unfollow(uri string, f Follower) {
	if c := b.count(uri); c != nil && c.followers[f] {
		delete(c.followers, f)
		b.release(uri)
	}
}

// Hold keeps a tracked resource tracked until release is called, even without requests for it.
func (b *Books) Hold(uri string) (release func()) {
	c := b.count(uri)
	if c == nil {
		return func() {}
	}
	c.held++
	c.holders++
	return func() {
		c.held--
		b.release(uri)
	}
}

// release undoes retain. After the last holder has gone, the page is no longer watched.
func (b *Books) release(uri string) {
	c := b.count(uri)
	if c == nil {
		return
	}
	if c.holders--; c.holders > 0 || c.waits > 0 || len(c.then) > 0 {
		return
	}
	b.untrack(c)
}

func (b *Books) untrack(c *count) {
	if c.ready {
		b.stop(c)
	}
	b.watches[c.uri].count = nil
	b.check(c.uri)
}

// stop ends the reports to a count, and keeps its revision.
func (b *Books) stop(c *count) {
	c.asked, c.ready = false, false
	b.counted--
	b.due.Remove(&c.item)
	b.check(c.uri)
}

// Track counts changes of the uris from now on. It calls then for each of them: at once with the
// reason why that fails, or once it is watched. A page that stands still, in a dialog or a frozen
// tab, confirms its watch when it goes on. So nobody may wait for all URIs before looking at one.
func (b *Books) Track(uris []string, then func(uri, why string)) {
	now := b.source.Now()
	b.expire(now)
	for _, uri := range uris {
		c := b.makeCount(uri)
		if c.used = now; c.ready {
			then(uri, "")
			continue
		}
		c.then = append(c.then, func(why string) { then(uri, why) })
		if !c.asked {
			b.ask(c)
		}
	}
}

// Await is Track for a call that waits for changes, until it calls end. Another agent that leaves,
// or reads much, does not end the counts meanwhile. Afterwards they stay as Track's do.
func (b *Books) Await(uris []string, then func(uri, why string)) (end func()) {
	counts := make([]*count, len(uris))
	for i, uri := range uris {
		counts[i] = b.makeCount(uri)
		counts[i].waits++
	}
	b.Track(uris, then)
	return func() {
		for _, c := range counts {
			c.waits--
		}
	}
}

// MakeRoom stops tracking half of what nobody holds or waits for, that which no request has needed
// for longest, and returns how many are counted no more. An agent without a memory holds nothing:
// one read 10,000 URIs under a template, and no other could wait for a minute. Half, since looking
// at all for each further URI would take 1 ms.
func (b *Books) MakeRoom() int {
	var idle []*count
	for _, w := range b.watches {
		if c := w.count; c != nil && c.ready && c.idle() {
			idle = append(idle, c)
		}
	}
	slices.SortFunc(idle, func(x, y *count) int { return x.used.Compare(y.used) })
	idle = idle[:(len(idle)+1)/2]
	for _, c := range idle {
		b.untrack(c)
	}
	return len(idle)
}

// idle reports whether only the time of the last request keeps the count.
func (c *count) idle() bool { return c.holders == 0 && c.waits == 0 }

// ask makes the page report changes. Versions that agents saw earlier get old.
func (b *Books) ask(c *count) {
	c.revision, c.known = b.Advance(), false
	c.asked = true
	if why := b.source.Refuses(c.uri, b.counted); why != "" {
		c.asked = false
		b.answer(c, why)
		return
	}
	b.counted++
	b.attach(c.uri, b.watches[c.uri], func() {
		if b.count(c.uri) == c && c.asked && !c.ready {
			c.ready = true
			b.answer(c, "")
		}
	})
}

// answer tells who waits for a page's reports that it has them, or why not.
func (b *Books) answer(c *count, why string) {
	if !c.ready && c.holders == 0 {
		b.untrack(c)
	}
	then := c.then
	c.then = nil
	for _, f := range then {
		f(why)
	}
}

// expire stops tracking resources without recent requests.
func (b *Books) expire(now time.Time) {
	if now.Sub(b.expired) < expireEvery {
		return
	}
	b.expired = now
	keep := trackFor
	if b.counted > manyCounted {
		keep = followFor
	}
	for _, w := range b.watches {
		c := w.count
		if c == nil || !c.idle() || c.asked && !c.ready || now.Sub(c.used) <= keep {
			continue
		}
		b.untrack(c)
	}
}
