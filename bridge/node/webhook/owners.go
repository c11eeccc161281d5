package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/node/bus"
)

// One node delivers for a user. All nodes choose the same live node, by the highest hash of node
// and user. It claims the user in the store before it delivers. It replaces the claim of another
// node only if that node is dead. Each node renews one lease for all of its claims, and stops
// delivering if it could not renew the lease for the time of a lease.

// Prefixes of keys in the table of owners; the name of a node or user follows.
const (
	keyNode = "node."
	keyUser = "user."
)

// errHeld says that another live node has claimed the user.
var errHeld = errors.New("another node delivers for the user")

func (s *Service) runStore() {
	open := func(name string, age time.Duration) (table Store) {
		for {
			ctx, cancel := context.WithTimeout(s.ctx, storeTimeout)
			table, err := s.o.Open(ctx, name, age)
			cancel()
			if err == nil {
				return table
			}
			if s.ctx.Err() == nil {
				s.o.Log.Warn("the store of webhooks is not there", "error", err)
			}
			if !s.pause(5) {
				return nil
			}
		}
	}
	subs := open("webhooks", kept)
	owners := open("webhook-owners", 0)
	if subs == nil || owners == nil {
		return
	}
	s.mu.Lock()
	s.subs, s.owners, s.heard = subs, owners, time.Now()
	s.mu.Unlock()
	s.runs.Go(func() { s.follow(subs, s.takeRecord) })
	s.follow(owners, s.takeOwner)
}

func (s *Service) follow(table Store, take func(key string, value []byte, revision uint64)) {
	all := sync.OnceFunc(func() {
		s.mu.Lock()
		s.known++
		s.mu.Unlock()
		s.wantSettle()
	})
	for {
		ctx, cancel := context.WithCancel(s.ctx)
		s.mu.Lock()
		s.watches[table] = cancel
		s.mu.Unlock()
		if err := table.Watch(ctx, take, all); err != nil {
			s.o.Log.Warn("the store of webhooks does not answer", "error", err)
		}
		cancel()
		if !s.pause(15) {
			return
		}
	}
}

func (s *Service) takeRecord(key string, value []byte, revision uint64) {
	r := s.box.open(key, value)
	if r == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.unread && value != nil {
			s.unread = true
			s.o.Log.Error("the store has subscriptions that another key has encrypted: they are " +
				"not delivered")
		}
		return
	}
	s.setRecord(key, r, revision)
}

func (s *Service) takeOwner(key string, value []byte, revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node, ok := strings.CutPrefix(key, keyNode); ok {
		if node == s.o.Node {
			s.heard = time.Now()
		}
		_, known := s.nodes[node]
		if value == nil {
			delete(s.nodes, node)
		} else {
			s.nodes[node] = lease{string(value), time.Now()}
		}
		if known != (value != nil) {
			s.wantSettle()
		}
	} else if name, ok := strings.CutPrefix(key, keyUser); ok {
		if u := s.userOf(name); revision >= u.at {
			u.holder, u.at = string(value), revision
			s.wantSettle()
		}
	}
}

// alive returns the nodes with a lease that has not run out. The lock is held.
func (s *Service) alive(now time.Time) (nodes []string) {
	for name, l := range s.nodes {
		if now.Sub(l.seen) < s.o.Lease {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// chosen returns the node that is to deliver for a user.
func chosen(nodes []string, user string) (best string) {
	var most [sha256.Size]byte
	for _, node := range nodes {
		// With FNV-1a one of three nodes had half of the users.
		sum := sha256.Sum256([]byte(user + " " + node))
		if bytes.Compare(sum[:], most[:]) > 0 {
			best, most = node, sum
		}
	}
	return best
}

// runLease renews this node's lease, and removes dead nodes' leases.
func (s *Service) runLease() {
	for count := 1; ; count++ {
		s.renew(count)
		if !s.pause(3) {
			return
		}
	}
}

func (s *Service) renew(count int) {
	s.mu.Lock()
	subs, owners, began := s.subs, s.owners, time.Now()
	var dead []string
	for name, l := range s.nodes {
		if began.Sub(l.seen) > 10*s.o.Lease {
			dead = append(dead, name)
		}
	}
	waits := s.closing || s.known < 2 // until a node has read both tables it delivers nothing
	if owners != nil && began.Sub(s.heard) > max(s.o.Lease, storeTimeout) {
		s.heard = began
		for _, cancel := range s.watches { // not even its own lease has come: watch again
			cancel()
		}
	}
	s.mu.Unlock()
	if owners == nil || waits {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Lease/3)
	defer cancel()
	if err := owners.Put(ctx, keyNode+s.o.Node, []byte(strconv.Itoa(count))); err != nil {
		s.o.Log.Warn("the store of webhooks does not answer", "error", err)
		return
	}
	s.mu.Lock()
	if !s.leased(time.Now()) { // what has come meanwhile waits for this
		for _, u := range s.users {
			for _, d := range u.deliveries {
				s.wakes.add(d)
			}
		}
	}
	s.renewed = began
	s.mu.Unlock()
	for _, name := range dead {
		// Or the next time.
		_, _ = owners.Change(ctx, keyNode+name, func([]byte) ([]byte, error) { return nil, nil })
	}
	s.wantSettle()
	kept, _ := subs.Copies(ctx) // 0 with an error
	claims, _ := owners.Copies(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Copies = min(kept, claims)
}

func (s *Service) runSettle() {
	for {
		select {
		case <-s.kick:
			s.settle()
		case <-s.ctx.Done():
			return
		}
	}
}

// settle acquires the users for whom this node is chosen, and drops the others.
func (s *Service) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.known < 2 {
		return
	}
	nodes := s.alive(now)
	for name, u := range s.users {
		owed := 0
		for key, r := range u.records {
			if r.owed(now) {
				owed++
			} else if u.deliveries[key] == nil {
				delete(u.records, key)
			}
		}
		wants := !s.closing && s.leased(now) && chosen(nodes, name) == s.o.Node
		// Its claim must go even without subscriptions.
		orphan := u.holder != "" && !slices.Contains(nodes, u.holder)
		switch {
		case u.state == free && wants && (owed > 0 || orphan) && now.After(u.again):
			u.state = moving
			s.runs.Go(func() { s.acquire(u) })
		case u.state == free && u.holder == s.o.Node && (!wants || owed == 0) && now.After(u.again):
			// A claim that could not be given back, or after which deliveries could not begin.
			u.state = moving
			s.runs.Go(func() { s.drop(u) })
		case u.state == mine && (!wants || owed == 0 || u.holder != s.o.Node):
			u.state = moving
			u.cancel()
			for _, d := range u.deliveries {
				s.stop(d)
			}
			s.runs.Go(func() { s.drop(u) })
		case u.state == mine:
			for key := range u.records {
				s.reconcile(u, key)
			}
		case u.state == free && owed == 0 && u.holder == "":
			delete(s.users, name)
		}
	}
}

// acquire begins to deliver for a user, unless another live node has claimed it.
func (s *Service) acquire(u *user) {
	s.moves <- struct{}{}
	defer func() { <-s.moves }()
	ctx, cancel := context.WithTimeout(s.ctx, storeTimeout)
	defer cancel()
	var feed Feed
	revision, err := s.claim(ctx, u.name)
	if err == nil {
		feed, err = s.o.Feed(ctx, u.name)
	}
	if err != nil && !errors.Is(err, errHeld) {
		s.o.Log.Warn("deliveries for a user cannot begin", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision >= u.at && revision > 0 {
		u.holder, u.at = s.o.Node, revision
	}
	if err != nil {
		u.state, u.again = free, time.Now().Add(s.o.Lease/3)
		return
	}
	u.state, u.feed = mine, feed
	u.ctx, u.cancel = context.WithCancel(s.ctx)
	for key := range u.records {
		s.reconcile(u, key)
	}
	s.wantSettle()
}

func (s *Service) claim(ctx context.Context, name string) (revision uint64, err error) {
	return s.owners.Change(ctx, keyUser+name, func(old []byte) ([]byte, error) {
		holder := string(old)
		if holder != "" && holder != s.o.Node {
			if alive, err := s.renewedBy(ctx, holder); alive || err != nil {
				return nil, errors.Join(errHeld, err)
			}
		}
		return []byte(s.o.Node), nil
	})
}

// renewedBy reports whether a node is alive. It reads the store, which may be ahead of this node's
// watch.
func (s *Service) renewedBy(ctx context.Context, node string) (bool, error) {
	value, err := s.owners.Get(ctx, keyNode+node)
	if err != nil || value == nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[node].value != string(value) {
		s.nodes[node] = lease{string(value), time.Now()}
	}
	return time.Since(s.nodes[node].seen) < s.o.Lease, nil
}

func (s *Service) drop(u *user) {
	s.moves <- struct{}{}
	defer func() { <-s.moves }()
	u.attempts.Wait()
	s.mu.Lock()
	told := slices.Collect(maps.Values(u.deliveries))
	clear(u.deliveries)
	s.mu.Unlock()
	for _, d := range told {
		s.flush(d)
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Lease/3)
	defer cancel()
	revision, err := s.owners.Change(ctx, keyUser+u.name, func(old []byte) ([]byte, error) {
		if string(old) != s.o.Node {
			return nil, bus.ErrKeep
		}
		return nil, nil
	})
	if err != nil {
		s.o.Log.Warn("a claim could not be given back, which is tried again: another node waits "+
			"for that", "error", err)
	}
	if u.feed != nil {
		u.feed.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && revision >= u.at {
		u.holder, u.at = "", revision
	}
	if u.holder == s.o.Node {
		u.again = time.Now().Add(s.o.Lease / 3)
	}
	u.state, u.feed = free, nil
	s.wantSettle()
}
